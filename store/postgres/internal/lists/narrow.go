package lists

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// narrow are the conditions that no index serves.
func narrow(f store.Filter, live bool) (match []condition) {
	text := func(condition, value string) {
		if value != "" {
			match = append(match, when(condition, value))
		}
	}
	at := func(condition string, t time.Time) {
		if !t.IsZero() {
			match = append(match, when(condition, t))
		}
	}
	if prefix, begins := f.KindPrefix(); begins {
		text("starts_with(kind, %s)", prefix)
	} else {
		text("kind = %s", f.Kind)
	}
	text("key = %s", f.Key)
	text("tags @> ARRAY[%s::text]", f.Tag)
	// A job due exactly now is ready: the two bounds of due share no time and leave none out.
	at("due <= %s", f.DueBefore)
	at("due > %s", f.DueAfter)
	at("created < %s", f.CreatedBefore)
	at("created >= %s", f.CreatedAfter)
	if live && f.Wait != job.NoWait {
		match = append(match, when("wait = %s", int16(f.Wait)))
	}
	if !live {
		at("finished < %s", f.FinishedBefore)
		at("finished >= %s", f.FinishedAfter)
	}
	if f.Fingerprint != "" { // somewhere in it; Filter.Matches reads which failure has it
		match = append(match, when("position(%s::bytea IN failures) > 0", []byte(f.Fingerprint)))
	}
	return match
}
