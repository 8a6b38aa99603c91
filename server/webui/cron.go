package webui

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
)

// cronPages are the schedules, and one of them.
var cronPages = []page{
	{
		path: "/cron", name: "cron", title: "Cron", nav: nav{label: "Cron", icon: "n-cron", order: 40, key: "c"}, load: loadCron,
		regions: []region{
			{name: "cron-lead", tag: "p", class: "lead", every: 2 * time.Second, fails: "Schedules"},
			{name: "cron-rows", tag: "tbody", every: 2 * time.Second, fails: "Schedules", items: func(v *view) ([]item, error) {
				return v.data.(*cronData).items(), nil
			}},
		},
	},
	{
		path: "/cron/{name}", name: "schedule", under: "cron", load: loadSchedule,
		regions: []region{{name: "schedule-now", class: "stack", every: 2 * time.Second, fails: "The schedule"}},
	},
}

const (
	fireTicks  = 20 // fires that are shown of each schedule
	nextTimes  = 3
	watchLimit = 200 // rows of a page at most
)

// cronData is the list of schedules.
type cronData struct {
	Rows                []cronRow
	All, Paused, Broken int
	First               *cronRow // the one that is due next
	Query               string
	Next                string // the page goes on behind this name
	Visited             int
}

// cronRow is one schedule.
type cronRow struct {
	pawl.ScheduleStatus
	Element string // id of its row
	Words   string
	Nexts   []time.Time // in its zone
	Fires   []fire
	Took    time.Duration // p95 of its last fires
	Source  string        // code, operator or changed
	Shift   string
}

// schedules are all of them, read once for all who look.
func (v *view) schedules() ([]pawl.ScheduleStatus, error) {
	return cached(v, "schedules", time.Second, v.app.e.Schedules)
}

func loadCron(v *view) (any, error) {
	all, err := v.schedules()
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	d := &cronData{All: len(all), Query: strings.TrimSpace(v.query.Get("q"))}
	// What is broken comes first, then by when it is due; what is paused is due never.
	slices.SortStableFunc(all, func(a, b pawl.ScheduleStatus) int {
		rank := func(s *pawl.ScheduleStatus) int {
			switch {
			case s.Fault != "":
				return 0
			case s.Next.IsZero():
				return 2
			}
			return 1
		}
		return cmp.Or(rank(&a)-rank(&b), a.Next.Compare(b.Next), cmp.Compare(a.Name, b.Name))
	})
	watched := readWatch(v.query.Get(watchParam))
	size := cmp.Or(v.Prefs.Size, pageSizes[0])
	from := max(0, slices.IndexFunc(all, func(s pawl.ScheduleStatus) bool { return s.Name == v.query.Get("after") })+1)
	for i := range all {
		s := &all[i]
		if s.Paused {
			d.Paused++
		}
		if s.Fault != "" {
			d.Broken++
		}
		if s.Fault == "" && !s.Next.IsZero() && d.First == nil {
			d.First = &cronRow{ScheduleStatus: *s}
		}
		switch {
		case v.live && !watched[shortHash(s.Name)], !v.live && i < from:
		case !strings.Contains(s.Name+" "+s.Holds.Kind+" "+s.Holds.Queue, d.Query):
		case len(d.Rows) == watchLimit || !v.live && len(d.Rows) == size:
			if d.Next == "" {
				d.Next = d.Rows[len(d.Rows)-1].Name
			}
		default:
			d.Rows = append(d.Rows, rowOf(s, v.Now))
		}
	}
	if err := v.fires(d.Rows); err != nil {
		return nil, err
	}
	if !v.live {
		v.path = strings.TrimPrefix(v.With("after", v.query.Get("after")), v.app.opts.Prefix)
		v.Watch(writeWatch(d.Rows))
	}
	return d, nil
}

// items are the rows, which keep their places.
func (d *cronData) items() []item {
	list := make([]item, len(d.Rows))
	for i := range d.Rows {
		list[i] = item{d.Rows[i].Element, &d.Rows[i]}
	}
	return list
}

// elementID is an id for the element of a name, whatever is in that.
func elementID(prefix, name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("%s%x", prefix, h.Sum64())
}

// A stream watches the rows that are there: four bytes for each, since every form of the page repeats them.
func writeWatch(rows []cronRow) string {
	b := make([]byte, 0, 4*len(rows))
	for i := range rows {
		b = binary.BigEndian.AppendUint32(b, shortHash(rows[i].Name))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func readWatch(text string) map[uint32]bool {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) > 4*watchLimit {
		return nil
	}
	set := map[uint32]bool{}
	for ; len(b) >= 4; b = b[4:] {
		set[binary.BigEndian.Uint32(b)] = true
	}
	return set
}

func shortHash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// rowOf is a schedule without its fires.
func rowOf(s *pawl.ScheduleStatus, now time.Time) cronRow {
	r := cronRow{ScheduleStatus: *s, Element: elementID("s", s.Name), Words: cronWords(s.Holds.Cron), Source: "code"}
	changed := slices.ContainsFunc(s.Overridden, func(field string) bool { return field != "paused" })
	switch {
	case s.Owner == "":
		r.Source = "operator"
	case changed:
		r.Source = "changed"
	}
	if s.Fault == "" {
		r.Nexts = cronTimes(&s.Holds, s.Next, nextTimes)
		r.Shift = clockShift(&s.Holds, now)
	}
	return r
}

// Far reports whether the time that it is due next is shown as one, since an age would say little.
func (r *cronRow) Far(now time.Time) bool { return !strings.HasPrefix(relative(r.Next, now), "in ") }

// State is how the schedule stands, as its pill has it.
func (r *cronRow) State() string {
	switch {
	case r.Fault != "" && r.Next.IsZero() && !r.Paused:
		return "disabled"
	case r.Paused:
		return "paused"
	}
	return "scheduled"
}

// Wrong is why it is not fired.
func (r *cronRow) Wrong() string { return strings.TrimPrefix(r.Fault, "pawl: ") }

// Says is how the schedule stands, in a sentence.
func (r *cronRow) Says() string {
	switch {
	case r.Fault != "" && r.Next.IsZero():
		return "It is disabled: " + r.Wrong() + "."
	case r.Fault != "":
		return "The last due time could not be fired: " + r.Wrong() + ". It is tried again."
	case r.Paused && r.Note != "":
		return fmt.Sprintf("It is paused by %s: “%s”.", cmp.Or(r.By, "somebody"), r.Note)
	case r.Paused:
		return "It is paused. Due times pass without a job."
	case r.Words != "":
		return strings.ToUpper(r.Words[:1]) + r.Words[1:] + ", " + r.ZoneName() + "."
	}
	return "Due by " + r.Holds.Cron + ", " + r.ZoneName() + "."
}

// ZoneName is the zone of its expression.
func (r *cronRow) ZoneName() string { return cmp.Or(r.Holds.Zone, "UTC") }
