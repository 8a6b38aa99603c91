package job_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

func TestJ7_KeepsTheLast32Failures(t *testing.T) {
	at := time.Date(2026, 11, 15, 12, 0, 0, 123_456_000, time.UTC)
	var stored []byte
	for i := 1; i <= 40; i++ {
		f := job.NewFailure(i, int64(i), fmt.Sprintf("failure %d", i), "stack")
		f.Worker = 9
		stored = job.AppendFailure(stored, at.Add(time.Duration(i)*time.Second), f.Body())
	}
	list := job.StoredFailures(stored).List()
	if len(list) != job.MaxFailures {
		t.Fatalf("%d kept", len(list))
	}
	for i, f := range list {
		want := job.NewFailure(9+i, int64(9+i), fmt.Sprintf("failure %d", 9+i), "stack")
		want.Worker, want.Time = 9, at.Add(time.Duration(9+i)*time.Second)
		if f != want {
			t.Errorf("failure %d is %+v, want %+v", i, f, want)
		}
	}
	if last, ok := job.StoredFailures(stored).Last(); !ok || last != list[31] {
		t.Errorf("the last is %+v, %v", last, ok)
	}
}

func TestJ7_NoFailures(t *testing.T) {
	var none job.Failures
	if _, ok := none.Last(); ok || !none.None() || none.List() != nil {
		t.Errorf("%v", none)
	}
	if b, err := json.Marshal(none); err != nil || string(b) != "[]" {
		t.Errorf("as JSON %s, %v", b, err)
	}
}

func TestJ7_FailuresTravel(t *testing.T) {
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	stored := job.AppendFailure([]byte("rubbish"), at, job.NewFailure(2, 3, "no luck", "stack").Body())
	was := job.StoredFailures(stored)
	var back job.Failures
	b, err := json.Marshal(was)
	if err != nil || json.Unmarshal(b, &back) != nil || !slices.Equal(back.List(), was.List()) {
		t.Errorf("through JSON (%s, %v) came %v, want %v", b, err, back, was)
	}
	var wire bytes.Buffer
	if err := gob.NewEncoder(&wire).Encode(job.Job{Failures: was}); err != nil {
		t.Fatal(err)
	}
	var j job.Job
	if err := gob.NewDecoder(&wire).Decode(&j); err != nil || !j.Failures.Equal(was) {
		t.Errorf("through gob came %v, %v", j.Failures, err)
	}
}

// What cannot be read is a value that says so, and costs the failures around it nothing.
func TestP8_UnreadableFailuresAreValues(t *testing.T) {
	body := func(message string) []byte { return job.NewFailure(1, 1, message, "").Body() }
	first := job.AppendFailure(nil, time.UnixMicro(1), body("first"))
	whole := job.AppendFailure(first, time.UnixMicro(2), body("second"))
	newer := bytes.Clone(first)
	newer[1] = 77 // a kind of frame that a later build writes
	for _, c := range []struct {
		name   string
		stored []byte
		before string // what List says of it
		after  string // and once another failure was added
	}{
		{"something else", []byte("not frames"), "?", "? added"},
		{"one byte", []byte{1, 9}, "?", "? added"},
		{"cut off", whole[:len(whole)-1], "first ?", "first ? added"},
		{"cut off in the head", whole[:len(first)+5], "first ?", "first ? added"},
		{"rubbish behind", append(bytes.Clone(whole), "rubbish"...), "first second ?", "first second ? added"},
		{"a body of another build", job.AppendFailure(first, time.UnixMicro(2), []byte{0xee, 1, 2}), "first ?", "first ? added"},
		{"a frame of another build", newer, "?", "? added"},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := bytes.Clone(c.stored)
			if got := shown(c.stored); got != c.before {
				t.Errorf("it is %q, want %q", got, c.before)
			}
			longer := job.AppendFailure(c.stored, time.UnixMicro(3), body("added"))
			if got := shown(longer); got != c.after {
				t.Errorf("with another it is %q, want %q", got, c.after)
			}
			if !bytes.Equal(was, c.stored) {
				t.Error("what was stored has been changed")
			}
			for range 40 {
				longer = job.AppendFailure(longer, time.UnixMicro(4), body("more"))
			}
			if got := shown(longer); got != strings.TrimSpace(strings.Repeat("more ", job.MaxFailures)) {
				t.Errorf("after 40 more it is %q", got)
			}
		})
	}
}

// shown lists messages; what cannot be read is "?".
func shown(stored []byte) string {
	var words []string
	for _, f := range job.StoredFailures(stored).List() {
		switch {
		case f.Unreadable && strings.HasPrefix(f.Message, "cannot be read: "):
			words = append(words, "?")
		case f.Unreadable:
			words = append(words, "unexplained")
		default:
			words = append(words, f.Message)
		}
	}
	return strings.Join(words, " ")
}

// Whatever is stored, nothing fails, the newest failure is there, and the bounds hold.
func TestP10_AnyBytesStayWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "stored")
		if rapid.Bool().Draw(t, "format") && len(stored) > 1 {
			stored[0], stored[1] = 1, 1
		}
		if rapid.Bool().Draw(t, "large") {
			stored = append(stored, make([]byte, 100<<10)...)
		}
		for range rapid.IntRange(1, 40).Draw(t, "more") {
			stored = job.AppendFailure(stored, time.UnixMicro(5), job.NewFailure(3, 4, "added", "").Body())
		}
		f := job.StoredFailures(stored)
		last, ok := f.Last()
		if !ok || last.Message != "added" || last.Attempt != 3 || !last.Time.Equal(time.UnixMicro(5)) {
			t.Fatalf("the last is %+v, %v", last, ok)
		}
		if n := len(f.List()); n > job.MaxFailures {
			t.Fatalf("%d failures", n)
		}
		if _, err := json.Marshal(f); err != nil {
			t.Fatal(err)
		}
	})
}
