package webui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// queuesLead is the sentence above the list.
type queuesLead struct {
	Queues                            int
	More                              bool
	Paused, Unserved, Cooling, Frozen int
	Held, Ready                       pawl.Counted
	Full                              []string // queues whose slots are all taken while jobs wait
	Kinds                             []pawl.Pause
	PerMinute                         string
}

func leadOf(rows []*queueRow, now *queuesNow) queuesLead {
	l := queuesLead{Queues: len(rows), More: len(rows) >= store.MaxQueues}
	perMinute := 0.0
	for _, r := range rows {
		l.Ready = plus(l.Ready, r.Ready)
		perMinute += r.Flow.PerMinute
		if r.Held {
			l.Held = plus(l.Held, r.Ready)
		}
		switch r.State {
		case "frozen":
			l.Frozen++
		case "paused":
			l.Paused++
		case "unserved":
			l.Unserved++
		case "cooling":
			l.Cooling++
		case "serving":
			if r.Capacity > 0 && r.Running.Jobs >= r.Capacity && r.Ready.Jobs > 0 {
				l.Full = append(l.Full, r.Name)
			}
		}
	}
	slices.Sort(l.Full)
	for _, p := range now.Reply.Pauses {
		if p.Scope == job.PauseKind {
			l.Kinds = append(l.Kinds, p)
		}
	}
	number, unit := rate(uint64(perMinute*60+.5), time.Hour)
	l.PerMinute = number + " " + strings.Replace(unit, "/min", "a minute", 1)
	if perMinute == 0 {
		l.PerMinute = ""
	}
	return l
}

// counted says of what time the numbers of queues are: also a queue that is paused has done so many a minute before. Empty where nothing
// was counted.
func (s span) counted(rows []*queueRow) string {
	var recent, whole time.Duration
	for _, r := range rows {
		recent, whole = max(recent, r.Flow.RecentIn), max(whole, r.Flow.In)
	}
	switch {
	case whole == 0:
		return ""
	case s.Name == "":
		return "Done a minute is of the last " + duration(recent) + " " + s.within() + "; failed and p95 are of all that time."
	}
	return "Done a minute is of the last " + duration(recent) + "; failed and p95 are of the last " + duration(whole) + "."
}

// Together reports whether several queues do.
func (l *queuesLead) Together() bool { return l.Paused+l.Unserved+l.Cooling+l.Frozen > 1 }

// HeldSome reports whether any queue gives nothing out.
func (l *queuesLead) HeldSome() bool { return l.Paused+l.Unserved+l.Cooling+l.Frozen > 0 }

// queuesFlag is the flag of the sidebar: how many queues give nothing out that should.
func queuesFlag(l *look) badge {
	var paused, cooling, unserved int
	for i := range l.Queues {
		switch queueState(&l.Queues[i], &queueFlow{}) {
		case "paused", "frozen":
			paused++
		case "cooling":
			cooling++
		case "unserved":
			unserved++
		}
	}
	n := paused + cooling + unserved
	if n == 0 {
		return badge{}
	}
	b := badge{Text: count(n), Icon: "paused", State: "retrying"}
	if paused == 0 {
		b.Icon, b.State = "cooling", "cooling"
		if unserved > 0 {
			b.Icon, b.State = "unserved", "dead"
		}
	}
	var words []string
	for _, w := range []struct {
		n    int
		word string
	}{{paused, "paused"}, {cooling, "cooling"}, {unserved, "unserved"}} {
		if w.n > 0 {
			words = append(words, count(w.n)+" "+w.word)
		}
	}
	b.Title = strings.Join(words, ", ")
	return b
}

// queueOrders are how the list can be sorted; the first is the default.
var queueOrders = []struct {
	name, text string
	compare    func(a, b *queueRow) int
}{
	{"", "Needs someone first", func(a, b *queueRow) int {
		return cmp.Or(needOrder(a)-needOrder(b), b.Ready.Jobs-a.Ready.Jobs)
	}},
	{"name", "By name", func(a, b *queueRow) int { return 0 }},
	{"ready", "Most ready", func(a, b *queueRow) int { return b.Ready.Jobs - a.Ready.Jobs }},
	{"oldest", "Oldest ready", func(a, b *queueRow) int { return compareOldest(a.Oldest, b.Oldest) }},
	{"done", "Most done", func(a, b *queueRow) int { return cmp.Compare(b.Flow.PerMinute, a.Flow.PerMinute) }},
	{"failed", "Most failing", func(a, b *queueRow) int { return cmp.Compare(b.Flow.FailedShare, a.Flow.FailedShare) }},
	{"wait", "Longest queue time", func(a, b *queueRow) int { return cmp.Compare(b.Flow.QueueP95, a.Flow.QueueP95) }},
	{"run", "Longest run time", func(a, b *queueRow) int { return cmp.Compare(b.Flow.RunP95, a.Flow.RunP95) }},
}

func needOrder(q *queueRow) int {
	if i := slices.Index([]string{"frozen", "paused", "unserved", "cooling"}, q.State); i >= 0 {
		return i
	}
	return 9
}

func compareOldest(a, b time.Time) int {
	switch {
	case a.IsZero() || b.IsZero():
		return cmp.Compare(oneIf(a.IsZero()), oneIf(b.IsZero()))
	}
	return a.Compare(b)
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
