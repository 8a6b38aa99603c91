package webui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// settingRow is one setting as a table shows it: what code declares, what holds, and who changed that.
type settingRow struct {
	Field, Name   string
	Declared, Now string
	Over          bool // operators have set it
	Own           bool // for this very queue or limit: it can be set back
	Pattern       string
	By, Note      string
	Since         time.Time
	Fixed         string // why it cannot be changed here
	Edit          bool   // its form is open
	Value, Bounds string // of the form
	Link, Close   string // opens and closes the form
}

// queueField is a setting of queues.
type queueField struct {
	name, text string // as JSON has it, as people call it
	bounds     string
	show       func(*job.QueueSettings) string // with what holds where it is not set
	exact      func(*job.QueueSettings) string // as set reads it
	set        func(*job.QueueSettings, string) error
}

var queueFields = []queueField{
	{
		"total", "Total in the cluster", "1 to 100,000,000, or none",
		func(s *job.QueueSettings) string { return countOrNone(s.Total) },
		func(s *job.QueueSettings) string { return countOrNone(s.Total) },
		func(s *job.QueueSettings, text string) (err error) {
			s.Total, err = readCount(text, job.MaxTotal, true)
			return err
		},
	},
	{
		"attempts", "Attempts", "1 to 10,000; for jobs that are enqueued from now on",
		func(s *job.QueueSettings) string { return count(cmp.Or(s.Attempts, job.DefaultAttempts)) },
		func(s *job.QueueSettings) string { return count(cmp.Or(s.Attempts, job.DefaultAttempts)) },
		func(s *job.QueueSettings, text string) (err error) {
			s.Attempts, err = readCount(text, job.MaxAttempts, false)
			return err
		},
	},
	{
		"backoff", "Backoff", "such as 1s doubling to 6h, 10s times 3 to 1h, or at once",
		func(s *job.QueueSettings) string { return backoffText(s.Backoff, spanWords) },
		func(s *job.QueueSettings) string { return backoffText(s.Backoff, exactSpan) },
		func(s *job.QueueSettings, text string) (err error) { s.Backoff, err = readBackoff(text); return err },
	},
	{
		"aging", "Aging", "how much later each priority counts as due, such as 10s, at most 365d; or none",
		func(s *job.QueueSettings) string { return spanOr(s.Aging, 0, spanWords) },
		func(s *job.QueueSettings) string { return spanOr(s.Aging, 0, exactSpan) },
		func(s *job.QueueSettings, text string) (err error) {
			s.Aging, err = readSpanOrNone(text, job.MaxAging)
			return err
		},
	},
	keepField("keep_done", "Keep done", job.KeepDone, func(s *job.QueueSettings) *time.Duration { return &s.KeepDone }),
	keepField("keep_dead", "Keep dead", job.KeepDead, func(s *job.QueueSettings) *time.Duration { return &s.KeepDead }),
	keepField("keep_cancelled", "Keep cancelled", job.KeepCancelled, func(s *job.QueueSettings) *time.Duration { return &s.KeepCancelled }),
}

func keepField(name, text string, otherwise time.Duration, of func(*job.QueueSettings) *time.Duration) queueField {
	return queueField{
		name, text, "such as 36h or 7d, at most 36500d; or none",
		func(s *job.QueueSettings) string { return spanOr(*of(s), otherwise, spanWords) },
		func(s *job.QueueSettings) string { return spanOr(*of(s), otherwise, exactSpan) },
		func(s *job.QueueSettings, text string) (err error) {
			*of(s), err = readSpanOrNone(text, job.MaxKeep)
			return err
		},
	}
}

func queueFieldOf(name string) (*queueField, error) {
	for i := range queueFields {
		if queueFields[i].name == name {
			return &queueFields[i], nil
		}
	}
	return nil, job.Invalid("field", name, "must be a setting of queues")
}

// read is a value of the field; what is wrong is said with what is allowed.
func (f *queueField) read(text string) (s job.QueueSettings, err error) {
	text = strings.TrimSpace(text)
	if err = f.set(&s, text); err == nil {
		if err = s.Check(f.text); err == nil {
			return s, nil
		}
	}
	return s, wrong(f.text, text, f.bounds)
}

// wrong says what was given for a field, and what may be.
func wrong(field, given, bounds string) error {
	if given == "" {
		given = "nothing"
	}
	return &fault{http.StatusUnprocessableEntity, "Nothing changed.", fmt.Sprintf("%s cannot be %s. Allowed: %s.", field, plain(given, 40),
		bounds)}
}

// queueSettings are the rows of the table.
func (v *view) queueSettings(r *queueRow, now *queuesNow, crew []crewRow, changes []pawl.AuditEntry) (rows []settingRow) {
	holds, _ := now.Holds.Queue(r.Name)
	var is, declared job.QueueSettings
	_ = json.Unmarshal(holds.Value, &is) // what cannot be read is shown as not set (P8)
	_ = json.Unmarshal(holds.Declared, &declared)
	own, patterns := overridesOf(&now.Reply, r.Name)
	rows = append(rows, slotsRow(crew))
	for i := range queueFields {
		f := &queueFields[i]
		row := settingRow{Field: f.name, Name: f.text, Declared: f.show(&declared), Now: f.show(&is), Bounds: f.bounds, Value: f.exact(&is)}
		row.Over = slices.Contains(holds.Overridden, f.name)
		if row.Over {
			row.explain(f.name, own, patterns, changes)
		}
		if v.Can(auth.Operator) {
			row.Edit = v.query.Get("edit") == f.name
			row.Link, row.Close = v.with("edit", f.name), v.with("edit", "")
		}
		rows = append(rows, row)
	}
	return rows
}

// slotsRow is the one that each process has of its own.
func slotsRow(crew []crewRow) settingRow {
	row := settingRow{Name: "Workers a process", Now: "none", Fixed: "each process's own"}
	if len(crew) > 0 {
		most, least := crew[0].Slots, crew[len(crew)-1].Slots
		row.Now = count(most)
		if least != most {
			row.Now = count(least) + " to " + count(most)
		}
	}
	row.Declared = row.Now
	return row
}

// overridesOf is what operators have set for a queue itself, and for patterns that name it, the longest first.
func overridesOf(reply *store.SettingsReply, name string) (own *store.Override, patterns []*store.Override) {
	for i := range reply.Overrides {
		switch o := &reply.Overrides[i]; {
		case o.Kind != store.SettingQueue:
		case o.Name == name:
			own = o
		case job.IsPattern(o.Name) && job.Matches(o.Name, name):
			patterns = append(patterns, o)
		}
	}
	slices.SortStableFunc(patterns, func(a, b *store.Override) int { return len(b.Name) - len(a.Name) })
	return own, patterns
}

// explain says who set a field. An override knows its last change only; the audit log knows that of each field.
func (row *settingRow) explain(field string, own *store.Override, patterns []*store.Override, changes []pawl.AuditEntry) {
	by := own
	if row.Own = own != nil && hasField(own.Value, field); !row.Own {
		for _, p := range patterns {
			if hasField(p.Value, field) {
				by, row.Pattern = p, p.Name
				break
			}
		}
	}
	if by == nil {
		return
	}
	row.By, row.Note, row.Since = by.By, by.Note, by.Since
	if !row.Own {
		return
	}
	for i := range changes {
		if e := &changes[i]; strings.Contains(e.Detail, field+":") {
			row.By, row.Note, row.Since = e.By, e.Note, e.Time
			return
		}
	}
}

func hasField(value json.RawMessage, field string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(value, &fields) == nil && fields[field] != nil
}
