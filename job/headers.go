package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// Headers travel with a job: trace context and the like. To stores they are
// opaque bytes; EncodeHeaders writes these, nil for no headers. A name or a value
// that is not UTF-8 is refused, because JSON would replace it in silence.
func EncodeHeaders(h map[string]string) ([]byte, error) {
	if len(h) == 0 {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if !utf8.ValidString(name) || !utf8.ValidString(h[name]) {
			return nil, Invalid("headers", fmt.Sprintf("%q: %q", name, h[name]), "must be valid UTF-8")
		}
	}
	return json.Marshal(h)
}

// Headers are those the job was enqueued with, a new map with each call; nil when
// there are none, or when another program wrote what cannot be read.
func (j *Job) Headers() map[string]string { return decodeHeaders(j.HeaderBytes) }

// Headers are those of the draft, a new map with each call.
func (d *Draft) Headers() map[string]string { return decodeHeaders(d.HeaderBytes) }

// SetHeader adds or replaces one header: for hooks that hand on a trace. It
// changes nothing when name or value is not UTF-8.
func (d *Draft) SetHeader(name, value string) error {
	h := d.Headers()
	if h == nil {
		h = map[string]string{}
	}
	h[name] = value
	b, err := EncodeHeaders(h)
	if err != nil {
		return err
	}
	d.HeaderBytes = b
	return nil
}

func decodeHeaders(b []byte) map[string]string {
	if len(b) == 0 {
		return nil
	}
	var h map[string]string
	if err := json.Unmarshal(b, &h); err != nil {
		return nil
	}
	return h
}
