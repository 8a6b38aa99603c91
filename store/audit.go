package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// AuditEntry is one operator action. Entries are kept for 90 days.
type AuditEntry struct {
	ID     int64 // tells entries of one moment apart
	Time   time.Time
	By     string
	Action string // such as "retry", "pause" or "set queue"
	Target string // id of a job or operation, queue, kind or other name; "*" for everything
	Note   string
	// Detail is what changed, such as "total: 40 → 80" or "queue mail → slow", at
	// most MaxDetail bytes.
	Detail string
}

// MaxDetail is how much an entry says of what changed; what is longer is cut.
const MaxDetail = 4 << 10

// Details cuts what entries say to their bound.
func Details(text string) string {
	if len(text) <= MaxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:MaxDetail], "") + "…"
}

// At is the entry's place in the list.
func (e *AuditEntry) At() AuditPosition { return AuditPosition{e.Time, e.ID} }

// AuditFilter chooses entries; zero fields match everything. A target has an
// index of its own, and so has the time. By and Action are looked for among the
// entries that these leave.
type AuditFilter struct {
	Target string // a job's id as text, or a queue
	By     string
	Action string
	// After is the first moment, Before the first one that is too late.
	Before, After time.Time
}

// Matches reports whether By and Action fit. The rest is for an index to find.
func (f *AuditFilter) Matches(e *AuditEntry) bool {
	return (f.By == "" || f.By == e.By) && (f.Action == "" || f.Action == e.Action)
}

// AuditPosition is a place in the list of entries: their time, then their id.
type AuditPosition struct {
	Time time.Time
	ID   int64
}

// AuditPage is a part of the list of entries.
type AuditPage struct {
	After AuditPosition // Next of the page before; zero for the first page
	Limit int           // 1..1000
}

// Check refuses a page of no size or of too large a one.
func (p *AuditPage) Check() error {
	if p.Limit < 1 || p.Limit > 1000 {
		return job.Invalid("limit", p.Limit, "must be 1..1000")
	}
	return nil
}

// AuditVisits is how many entries one page reads at most: where By and Action
// match few of them, a page may hold less than its limit, and there are more (P10).
const AuditVisits = 2000

// AuditList is one page, the newest first.
type AuditList struct {
	Entries []AuditEntry
	More    bool          // there may be entries behind this page
	Next    AuditPosition // where they begin
}

// Add takes the next entry that a page visits, the newest first and the nth from
// 1, and reports whether the page is at its end.
func (l *AuditList) Add(f *AuditFilter, p *AuditPage, e *AuditEntry, n int) (end bool) {
	if f.Matches(e) {
		if len(l.Entries) == p.Limit {
			l.More, l.Next = true, l.Entries[p.Limit-1].At()
			return true
		}
		l.Entries = append(l.Entries, *e)
	}
	if n >= AuditVisits {
		l.More, l.Next = true, e.At()
	}
	return l.More
}

// Before is the place before which a page reads: behind the page before it, and
// before the filter's time.
func (p *AuditPage) Before(f *AuditFilter) AuditPosition {
	before := AuditPosition{time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), math.MaxInt64}
	if p.After != (AuditPosition{}) {
		before = p.After
	}
	if !f.Before.IsZero() && !f.Before.After(before.Time) {
		before = AuditPosition{f.Before, math.MinInt64}
	}
	return before
}

// PauseAction is what an audit entry calls a pause, or its end, and its target.
func PauseAction(p Pause, paused bool) (action, target string) {
	switch {
	case p.Scope == PauseAll && paused:
		return "freeze", "*"
	case p.Scope == PauseAll:
		return "unfreeze", "*"
	}
	action = "resume"
	if paused {
		action = "pause"
	}
	if p.Scope == PauseKind {
		action += " kind"
	}
	return action, p.Name
}

// CoolDownAction is what an audit entry calls the reset of a cool-down.
const CoolDownAction = "reset cool-down"

// OverrideAction is what an audit entry calls a change of what is set for a name,
// such as "set queue" or "reset queue", its target, and field by field what it was
// and is now.
func OverrideAction(s Setting, value, before, after json.RawMessage) (action, target, detail string) {
	verb := "reset "
	var given, was, is map[string]json.RawMessage
	// What cannot be read has no fields: it is one of another build.
	_, _, _ = json.Unmarshal(value, &given), json.Unmarshal(before, &was), json.Unmarshal(after, &is)
	for _, v := range given {
		if string(v) != "null" {
			verb = "set "
		}
	}
	switch { // what there is a word for
	case s.Kind == SettingSchedule && string(value) == `{"paused":true}`:
		verb = "pause "
	case s.Kind == SettingSchedule && string(value) == `{"paused":null}`:
		verb = "resume "
	}
	var changes []string
	for _, field := range slices.Sorted(maps.Keys(union(was, is))) {
		if !bytes.Equal(was[field], is[field]) {
			changes = append(changes, fmt.Sprintf("%s: %s → %s", field, setTo(was[field]), setTo(is[field])))
		}
	}
	detail = "nothing changed"
	if len(changes) > 0 {
		detail = strings.Join(changes, ", ")
	}
	return verb + string(s.Kind), s.Name, Details(detail)
}

func union(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, b)
	return all
}

func setTo(value json.RawMessage) string {
	if value == nil {
		return "not set"
	}
	return string(value)
}
