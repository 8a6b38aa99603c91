package job_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func TestJ16_ScheduleSettingsAreJSON(t *testing.T) {
	yes := true
	s := job.ScheduleSettings{
		Cron: "0 3 * * *", Zone: "Europe/Berlin", Kind: "report", Version: 2, Args: []byte(`{"shop":"main"}`), Queue: "q", Priority: 3, Attempts: 4,
		Timeout: 90 * time.Second, Key: "k", Tags: []string{"a"}, Capabilities: []string{"gpu"}, Budget: "b", Headers: map[string]string{"h": "v"},
		Unique: job.Unique{Hash: []byte{1, 2}, Period: time.Minute}, SkipIfActive: &yes, CatchUp: job.CatchUpAll, Paused: &yes,
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range job.ScheduleFields {
		if fields[name] == nil {
			t.Errorf("%s is not written: %s", name, text)
		}
		delete(fields, name)
	}
	if len(fields) > 0 {
		t.Errorf("written, and not among the fields: %v", fields)
	}
	var back job.ScheduleSettings
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("read again: %+v, %v", back, err)
	}
	if text, err := json.Marshal(job.ScheduleSettings{}); err != nil || string(text) != "{}" {
		t.Errorf("nothing is written as %s, %v", text, err)
	}
}

// Arguments come back byte for byte, whatever they are.
func TestJ16_ArgumentsOfSchedulesAreExact(t *testing.T) {
	for _, args := range []string{`{"a":1}`, `{"a": 1}`, "\x00\xff", `"<b>"`, `"\u2028"`, "plain", "", "null", "1.0"} {
		text, err := json.Marshal(job.ScheduleSettings{Args: []byte(args)})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ":null") {
			t.Errorf("%q is written as %s: null means that it is not set", args, text)
		}
		var back job.ScheduleSettings
		if err := json.Unmarshal(text, &back); err != nil || string(back.Args) != args {
			t.Errorf("%q is written as %s, and read as %q, %v", args, text, back.Args, err)
		}
	}
}

// A field that cannot be read costs itself only (P8).
func TestJ16_OneUnreadableFieldOfASchedule(t *testing.T) {
	var s job.ScheduleSettings
	err := json.Unmarshal([]byte(`{"cron":"@daily","priority":"high","kind":"k","later":7,"args":{"n":1}}`), &s)
	if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "priority") || s.Cron != "@daily" || s.Kind != "k" || string(s.Args) != `{"n":1}` {
		t.Errorf("read %+v, %v", s, err)
	}
}

func TestJ16_IdsOfDueTimesAreDerived(t *testing.T) {
	at := time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)
	id := job.ScheduledID("nightly", at)
	if id != job.ScheduledID("nightly", at.In(time.FixedZone("x", 3600))) {
		t.Error("a zone makes another id")
	}
	if id == job.ScheduledID("nightly", at.Add(time.Second)) || id == job.ScheduledID("nightly2", at) {
		t.Error("two due times share an id")
	}
	if !strings.HasPrefix(id.String(), job.ScheduledID("other", at).String()[:13]) || id.String()[14] != '7' {
		t.Errorf("%s does not begin with its time, or is no UUIDv7", id)
	}
}
