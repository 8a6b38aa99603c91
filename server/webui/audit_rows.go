package webui

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl"
)

// auditRow is one entry, or all of one operation over many jobs.
type auditRow struct {
	pawl.AuditEntry
	Link      string
	Operation *pawl.Operation
	Which     string // the jobs of the operation, in words
	Whose     string // the kind or queue that they are of
}

// Element is the id of its row.
func (r *auditRow) Element() string {
	if r.Operation != nil {
		return operationElement(r.Operation)
	}
	return fmt.Sprintf("e%d", r.ID)
}

func operationElement(o *pawl.Operation) string { return elementID("o", o.ID.String()) }

// Verb is what was done.
func (r *auditRow) Verb() string {
	if verb, bulk := bulkVerb(r.Action); bulk {
		return verb + " many"
	}
	return r.Action
}

// Progress is how far an operation is, or what it came to.
func (r *auditRow) Progress() string { return operationText(r.Operation) }

// Open reports whether it still goes on.
func (r *auditRow) Open() bool { return r.Operation != nil && r.Operation.State == pawl.OperationOpen }

// Count is how many jobs were changed; empty where it was about one thing.
func (r *auditRow) Count() string {
	if r.Operation == nil {
		return ""
	}
	return count(r.Operation.Counts.Changed + r.Operation.Counts.Asked)
}

// bulkVerb is what an operation over many jobs does: "start bulk retry" is "retry".
func bulkVerb(action string) (string, bool) {
	_, verb, bulk := strings.Cut(action, " bulk ")
	return verb, bulk
}

// auditFold makes rows of entries: those of one operation, and of the jobs that it changed, are one.
type auditFold struct {
	v          *view
	operations []pawl.Operation // the newest
	folds      bool
	rows       []auditRow
	seen       map[string]bool // elements of rows
}

// of is the operation that an entry is part of; nil without one. Entries of its jobs do not name it: they have its verb, its note and who
// began it, and are of its time.
func (a *auditFold) of(e *pawl.AuditEntry) *pawl.Operation {
	if !a.folds {
		return nil
	}
	_, bulk := bulkVerb(e.Action)
	for i := range a.operations {
		o := &a.operations[i]
		switch {
		case bulk:
			if o.ID.String() == e.Target {
				return o
			}
		case e.Action != string(o.Verb.Name) || e.By != o.By || e.Note != o.Note:
		case !e.Time.Before(o.Created) && (o.Ended.IsZero() || !e.Time.After(o.Ended)):
			if _, err := pawl.ParseID(e.Target); err == nil {
				return o
			}
		}
	}
	return nil
}

// rowOf is the row that an entry is in.
func (a *auditFold) rowOf(e *pawl.AuditEntry) auditRow {
	if o := a.of(e); o != nil {
		return a.operation(o)
	}
	r := auditRow{AuditEntry: *e, Link: a.v.targetLink(e)}
	if a.v.Hidden() && strings.HasSuffix(e.Action, " schedule") && payloadDetail.MatchString(e.Detail) {
		r.Detail = "What changed has arguments, which are hidden."
	}
	return r
}

// payloadDetail is what changed of payloads.
var payloadDetail = regexp.MustCompile(`(args|headers): `)

// operation is the row of an operation.
func (a *auditFold) operation(o *pawl.Operation) auditRow {
	f := &o.Filter
	return auditRow{Operation: o, Which: a.v.filterWords(f), Whose: cmp.Or(f.Kind, f.Queue, "jobs"), Link: a.v.app.link("/jobs", "kind",
		f.Kind, "queue", f.Queue), AuditEntry: pawl.AuditEntry{
		Time: o.Created, By: o.By, Action: "start bulk " + string(o.Verb.Name), Target: o.ID.String(), Note: o.Note,
	}}
}

// folded reports whether an entry is part of a row that is there.
func (a *auditFold) folded(e *pawl.AuditEntry) bool {
	r := a.rowOf(e)
	return a.seen[r.Element()]
}

func (a *auditFold) add(e *pawl.AuditEntry) {
	r := a.rowOf(e)
	if element := r.Element(); !a.seen[element] {
		a.seen[element] = true
		a.rows = append(a.rows, r)
	}
}

// watched are the rows of the operations that a stream watches: nothing else of the log ever changes.
func (a *auditFold) watched(w auditWatch) (rows []auditRow) {
	for i := range a.operations {
		if o := &a.operations[i]; w.elements[operationElement(o)] {
			rows = append(rows, a.operation(o))
		}
	}
	return rows
}

// auditWatch is what a stream watches: what is newer than the page, and the operations on it.
type auditWatch struct {
	newest   int64
	size     int
	elements map[string]bool
}

func watchOf(newest int64, size int, rows []auditRow) string {
	parts := []string{strconv.FormatInt(newest, 10), strconv.Itoa(size)}
	for i := range rows {
		if rows[i].Operation != nil {
			parts = append(parts, rows[i].Element())
		}
	}
	return strings.Join(parts, ".")
}

func readAuditWatch(q url.Values) auditWatch {
	w := auditWatch{size: pageSizes[0], elements: map[string]bool{}}
	for i, part := range strings.Split(q.Get(watchParam), ".") {
		switch n, err := strconv.ParseInt(part, 10, 64); {
		case i == 0 && err == nil:
			w.newest = n
		case i == 1 && err == nil && slices.Contains(pageSizes, int(n)):
			w.size = int(n)
		case i > 1:
			w.elements[part] = true
		}
	}
	return w
}
