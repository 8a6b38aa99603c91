package stream

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

// What an event says comes back from its CloudEvents form.
func TestE1_ToCloudEventsAndBack(t *testing.T) {
	text := rapid.StringMatching(`[a-zA-Zäß0-9 ./<>&-]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		e := Event{
			ID: "x" + text.Draw(t, "id"), Topic: "orders.placed", Key: text.Draw(t, "key"), Type: text.Draw(t, "type"), Source: text.Draw(t, "source"),
			Schema: rapid.IntRange(0, 9).Draw(t, "schema"), Correlation: text.Draw(t, "correlation"), Causation: text.Draw(t, "causation"),
			Trace: text.Draw(t, "trace"), TraceState: text.Draw(t, "state"),
			Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "time"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
		}
		if rapid.Bool().Draw(t, "expires") {
			e.Expires = e.Time.Add(time.Hour)
		}
		if n := rapid.IntRange(0, 2).Draw(t, "headers"); n > 0 {
			e.Headers = map[string]string{"a": text.Draw(t, "header"), "Content-Length": "7"}
		}
		switch rapid.IntRange(0, 2).Draw(t, "data") {
		case 0:
			e.ContentType, e.Data = JSON, []byte(`{"n":12345678901234567890,"s":"<&>"}`)
		case 1:
			e.ContentType, e.Data = "image/png", rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes")
		case 2:
			e.ContentType, e.Data = JSON, []byte("{broken")
		}
		b, err := e.CloudEvent()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseCloudEvent(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if len(e.Data) == 0 && len(got.Data) == 0 {
			e.Data, got.Data = nil, nil
		}
		if !reflect.DeepEqual(got, e) {
			t.Fatalf("%s\n%+v, want\n%+v", b, got, e)
		}
	})
}

func TestE1_ACloudEventOfAnother(t *testing.T) {
	got, err := ParseCloudEvent([]byte(`{"specversion":"1.0","type":"com.example.sent","source":"/mail","id":"A-1","time":"2026-04-05T17:31:00+02:00",
		"subject":"123","comexampleother":5,"datacontenttype":"application/json","data":{"a":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Event{ID: "A-1", Type: "com.example.sent", Source: "/mail", Time: time.Date(2026, 4, 5, 15, 31, 0, 0, time.UTC),
		ContentType: JSON, Data: []byte(`{"a":1}`), Headers: map[string]string{"subject": "123", "comexampleother": "5"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	_, err = ParseCloudEvent([]byte(`{"specversion":"0.3","time":"noon","data":1,"data_base64":""}`))
	for _, field := range []string{"specversion", "id", "source", "type", "time", "data_base64"} {
		if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

func FuzzCloudEvent(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","type":"a","source":"b","id":"c","data":{"a":[1]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseCloudEvent(b)
		if err != nil {
			return
		}
		again, err := e.CloudEvent()
		if err != nil || !json.Valid(again) {
			t.Fatalf("%q: %q, %v", b, again, err)
		}
		if _, err := ParseCloudEvent(again); err != nil {
			t.Fatalf("%q: %q: %v", b, again, err)
		}
	})
}
