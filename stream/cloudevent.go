package stream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// CloudEventType is the content type of the structured form.
const CloudEventType = "application/cloudevents+json"

// cloudEvent is the structured form of CloudEvents 1.0. What the standard does not know
// are extensions; the key is partitionkey, as the standard's extension has it.
type cloudEvent struct {
	SpecVersion     string            `json:"specversion"`
	ID              string            `json:"id"`
	Source          string            `json:"source"`
	Type            string            `json:"type"`
	Time            string            `json:"time,omitempty"`
	DataContentType string            `json:"datacontenttype,omitempty"`
	PartitionKey    string            `json:"partitionkey,omitempty"`
	TraceParent     string            `json:"traceparent,omitempty"`
	TraceState      string            `json:"tracestate,omitempty"`
	Topic           string            `json:"topic,omitempty"`
	SchemaVersion   int               `json:"schemaversion,omitempty"`
	CorrelationID   string            `json:"correlationid,omitempty"`
	CausationID     string            `json:"causationid,omitempty"`
	ExpiryTime      string            `json:"expirytime,omitempty"`
	Headers         map[string]string `json:"headers,omitempty"`
	Data            json.RawMessage   `json:"data,omitempty"`
	Base64          *string           `json:"data_base64,omitempty"`
}

// unnamed stands where the standard wants something and the event says nothing.
const unnamed = "pawl"

// CloudEvent is the event in the structured JSON form of CloudEvents 1.0. Data that is JSON
// stands there as it is, to the byte where it holds no white space around it; other data as base64.
func (e *Event) CloudEvent() ([]byte, error) {
	c := cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: e.Source, Type: e.Type, DataContentType: e.ContentType, PartitionKey: e.Key,
		TraceParent: e.Trace, TraceState: e.TraceState, Topic: e.Topic, SchemaVersion: e.Schema,
		CorrelationID: e.Correlation, CausationID: e.Causation, Headers: e.Headers,
	}
	if c.Source == "" {
		c.Source = "/" + unnamed
	}
	if c.Type == "" {
		c.Type = unnamed
	}
	if !e.Time.IsZero() {
		c.Time = e.Time.UTC().Format(time.RFC3339Nano)
	}
	if !e.Expires.IsZero() {
		c.ExpiryTime = e.Expires.UTC().Format(time.RFC3339Nano)
	}
	switch {
	case e.Data == nil:
	case isJSON(e.ContentType) && json.Valid(e.Data):
		c.Data = e.Data
	default:
		text := base64.StdEncoding.EncodeToString(e.Data)
		c.Base64 = &text
	}
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	err := w.Encode(c)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// ParseCloudEvent reads the structured JSON form. Attributes that are not known become
// headers, so that nothing is lost.
func ParseCloudEvent(b []byte) (Event, error) {
	var c cloudEvent
	if err := json.Unmarshal(b, &c); err != nil {
		return Event{}, fmt.Errorf("%w cloud event: %w", job.ErrInvalid, err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return Event{}, fmt.Errorf("%w cloud event: %w", job.ErrInvalid, err)
	}
	e := Event{
		ID: c.ID, Topic: c.Topic, Key: c.PartitionKey, Type: c.Type, Source: c.Source, ContentType: c.DataContentType, Schema: c.SchemaVersion,
		Correlation: c.CorrelationID, Causation: c.CausationID, Trace: c.TraceParent, TraceState: c.TraceState, Headers: c.Headers,
	}
	var errs []error
	if c.SpecVersion != "1.0" {
		errs = append(errs, job.Invalid("specversion", c.SpecVersion, "must be 1.0"))
	}
	for _, must := range [...][2]string{{"id", c.ID}, {"source", c.Source}, {"type", c.Type}} {
		if must[1] == "" {
			errs = append(errs, job.Invalid(must[0], must[1], "must be set"))
		}
	}
	if e.Source == "/"+unnamed {
		e.Source = ""
	}
	if e.Type == unnamed {
		e.Type = ""
	}
	moment := func(field, text string) (t time.Time) {
		if text == "" {
			return t
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			errs = append(errs, job.Invalid(field, text, "must be a time such as 2026-11-16T14:00:00Z"))
		}
		return t.UTC()
	}
	e.Time, e.Expires = moment("time", c.Time), moment("expirytime", c.ExpiryTime)
	switch {
	case c.Base64 != nil && c.Data != nil:
		errs = append(errs, job.Invalid("data_base64", "beside data", "must be alone"))
	case c.Base64 != nil:
		data, err := base64.StdEncoding.DecodeString(*c.Base64)
		if err != nil {
			errs = append(errs, job.Invalid("data_base64", *c.Base64, "must be base64"))
		}
		e.Data = data
	case c.Data != nil:
		e.Data = c.Data
		if e.ContentType == "" {
			e.ContentType = JSON
		}
	}
	for name, value := range all {
		if !knownAttributes[name] {
			var text string
			if json.Unmarshal(value, &text) != nil {
				text = string(value)
			}
			if e.Headers == nil {
				e.Headers = map[string]string{}
			}
			if _, there := e.Headers[name]; !there {
				e.Headers[name] = text
			}
		}
	}
	return e, errors.Join(errs...)
}

var knownAttributes = map[string]bool{
	"specversion": true, "id": true, "source": true, "type": true, "time": true, "datacontenttype": true, "partitionkey": true,
	"traceparent": true, "tracestate": true, "topic": true, "schemaversion": true, "correlationid": true, "causationid": true,
	"expirytime": true, "headers": true, "data": true, "data_base64": true,
}

// isJSON reports whether a content type is JSON; none is.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == JSON || strings.HasSuffix(media, "+json"))
}
