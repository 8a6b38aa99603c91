package stream

import "encoding/json"

// rest is what few events have. Stores keep it as one column.
type rest struct {
	Headers     map[string]string `json:"h,omitempty"`
	Correlation string            `json:"c,omitempty"`
	Causation   string            `json:"u,omitempty"`
	Trace       string            `json:"t,omitempty"`
	TraceState  string            `json:"s,omitempty"`
}

// Rest is what few events have, as stores keep it: headers, correlation, causation and
// trace. Nil means none of them.
func (e *Event) Rest() ([]byte, error) {
	if len(e.Headers) == 0 && e.Correlation == "" && e.Causation == "" && e.Trace == "" && e.TraceState == "" {
		return nil, nil
	}
	return json.Marshal(rest{e.Headers, e.Correlation, e.Causation, e.Trace, e.TraceState})
}

// SetRest reads what Rest wrote.
func (e *Event) SetRest(b []byte) error {
	if b == nil {
		return nil
	}
	var r rest
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	e.Headers, e.Correlation, e.Causation, e.Trace, e.TraceState = r.Headers, r.Correlation, r.Causation, r.Trace, r.TraceState
	return nil
}
