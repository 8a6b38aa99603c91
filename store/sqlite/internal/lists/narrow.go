package lists

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// narrow adds the conditions that no index serves.
func (r span) narrow(f store.Filter, live bool) span {
	text := func(condition, value string) {
		if value != "" {
			r = r.but(condition, func(q *lite.Query) { q.Text(value) })
		}
	}
	at := func(condition string, t time.Time) {
		if !t.IsZero() {
			r = r.but(condition, func(q *lite.Query) { q.Int(lite.Micros(t)) })
		}
	}
	if prefix, begins := f.KindPrefix(); begins {
		text("substr(kind, 1, "+strconv.Itoa(utf8.RuneCountInString(prefix))+") = ?", prefix)
	} else {
		text("kind = ?", f.Kind)
	}
	text(`"key" = ?`, f.Key)
	text("EXISTS (SELECT 1 FROM json_each("+legible("tags")+") WHERE value = ?)", f.Tag)
	// A job due exactly now is ready: the two bounds of due share no time and leave none out.
	at("due <= ?", f.DueBefore)
	at("due > ?", f.DueAfter)
	at("created < ?", f.CreatedBefore)
	at("created >= ?", f.CreatedAfter)
	if live && f.Wait != job.NoWait {
		r = r.but("wait = ?", func(q *lite.Query) { q.Int(int64(f.Wait)) })
	}
	if !live {
		at("finished < ?", f.FinishedBefore)
		at("finished >= ?", f.FinishedAfter)
	}
	if f.Fingerprint != "" { // somewhere in it; Filter.Matches reads which failure has it
		r = r.but("failures IS NOT NULL AND instr(failures, ?) > 0", func(q *lite.Query) { q.Blob([]byte(f.Fingerprint)) })
	}
	return r
}

// legible is a column of JSON, or NULL where it cannot be read: one bad row must
// not be the error of a statement that reads many (P8).
func legible(column string) string {
	return "CASE WHEN json_valid(" + column + ") THEN " + column + " END"
}
