package lists

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// condition is one of a stretch, with a %s for each of its arguments.
type condition struct {
	text string
	args []any
}

func when(text string, args ...any) condition { return condition{text, args} }

// stretch is a part of a table that a filter reads.
type stretch struct {
	table, columns string
	state          job.State   // 0 for all
	where          []condition // what an index serves
	match          []condition // what none does: compared row by row
	// each is a list to read one after the other, each in order, and by the column
	// that it is compared with: queue, or priority. withQueues names the queues.
	by       string
	prefix   string // of the order in which an index has it
	index    string // that order as a whole; naming it chooses the index
	each     any
	lists    int
	unsorted bool // the index has another order: such jobs have to be few
}

var listTypes = map[string]string{"queue": "::text[]", "priority": "::smallint[]"}

// listing writes a statement with its arguments.
type listing struct{ args []any }

func (b *listing) arg(value any) string {
	b.args = append(b.args, value)
	return fmt.Sprintf("$%d", len(b.args))
}

// all writes conditions that have to hold together.
func (b *listing) all(conditions []condition) string {
	var list []string
	for _, c := range conditions {
		names := make([]any, len(c.args))
		for i, a := range c.args {
			names[i] = b.arg(a)
		}
		list = append(list, fmt.Sprintf(c.text, names...))
	}
	if list == nil {
		return "true"
	}
	return strings.Join(list, " AND ")
}

// read is what reads a stretch, or one of its list.
func (b *listing) read(r stretch, columns string) string {
	text := "SELECT " + columns + "\n\tFROM " + r.table + "\n\tWHERE " + b.all(r.where)
	switch r.by {
	case "queue":
		text += " AND " + queueIs("each.name")
	case "priority":
		text += " AND priority = each.name"
	}
	if r.unsorted {
		text += "\n\tORDER BY " + r.index
	}
	return text
}

// each makes what reads one of a list read all of it.
func (b *listing) each(r stretch, text string) string {
	if r.by == "" {
		return "(" + text + ")"
	}
	return "(SELECT part.*\nFROM unnest(" + b.arg(r.each) + listTypes[r.by] + ") AS each (name)\nCROSS JOIN LATERAL (" + text + ") AS part)"
}

// queueIs compares the queue of archived jobs so that it is a part of the order
// they are read in. Were it compared for equality, a planner without statistics
// would read the whole key in its order by id rather than job_archive_state.
func queueIs(name string) string { return "queue >= " + name + " AND queue <= " + name }

// orders are what a stretch of each order is sorted by, and what is behind a
// position.
var orders = map[store.Order]struct {
	by     string
	behind func(store.Bookmark) condition
}{
	store.ByID:     {"id DESC", func(at store.Bookmark) condition { return when("id < %s", at.ID) }},
	store.ByDue:    {"due, id", func(at store.Bookmark) condition { return when("(due, id) > (%s, %s)", at.At, at.ID) }},
	store.ByFinish: {"finished DESC, id DESC", func(at store.Bookmark) condition { return when("(finished, id) < (%s, %s)", at.At, at.ID) }},
	store.ByGate: {"gate, priority, due, id", func(at store.Bookmark) condition {
		return when("(gate, priority, due, id) > (%s, %s, %s, %s)", at.Gate, at.Priority, at.At, at.ID)
	}},
	store.ByWorker: {"worker, id", func(at store.Bookmark) condition { return when("(worker, id) > (%s, %s)", int64(at.Worker), at.ID) }},
}

// page is the statement of a page, and which row of a stretch is the last of its
// part.
func (b *listing) page(stretches []stretch, p store.Page) (text string, part int) {
	order := orders[p.Order]
	var behind []condition
	if !p.After.Begins() {
		behind = []condition{order.behind(p.After)}
	}
	lists := 0
	for _, r := range stretches {
		if !r.unsorted {
			lists += max(r.lists, 1)
		}
	}
	part = max(store.MaxWalked/max(lists, 1), 1)
	limit, last := b.arg(p.Limit+1), strconv.Itoa(part)
	parts := make([]string, len(stretches))
	for i, r := range stretches {
		visited, end, chosen, by := "0::bigint", "", "", order.by
		if r.unsorted { // it is few, and read to its end
			chosen = "matches AND " + b.all(behind)
		} else {
			by = r.prefix + by
			r.where = slices.Concat(r.where, behind)
			visited, end = "row_number() OVER (ORDER BY "+by+")", "\n\tORDER BY "+by+"\n\tLIMIT "+last
			chosen = "matches OR visited = " + last
		}
		columns := r.columns + ", " + visited + " AS visited, (" + b.all(r.match) + ") AS matches"
		parts[i] = b.each(r, "SELECT *\nFROM (\n\t"+b.read(r, columns)+end+"\n) AS stretch\nWHERE "+chosen+"\nORDER BY "+by+"\nLIMIT "+limit)
	}
	return "SELECT *\nFROM (\n" + strings.Join(parts, "\nUNION ALL\n") + "\n) AS listed\nORDER BY " + order.by + "\nLIMIT " + limit, part
}
