package webui

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
)

// kpi is a number with its spark and one note.
type kpi struct {
	Name, Value, Unit, Note, Title string
	Spark                          template.HTML
}

func loadKPIs(v *view) (any, error) {
	l, err := v.look()
	if err != nil {
		return nil, err
	}
	list := make([]kpi, 0, 6)
	f, err := v.flow("", "")
	if v.heldBack(err) {
		return nil, err
	} else if err != nil {
		f = &flow{}
	}
	list = append(list, doneKPI(f), notDoneKPI(f))
	ready := kpi{Name: "Ready", Value: counted(l.Ready), Note: "all of them can start", Spark: spark(v.app.history.line("ready"), "")}
	if l.Held.Jobs > 0 {
		ready.Note, ready.Title = counted(l.Held)+" of them cannot start", l.whyHeld()
	} else if l.Ready.Jobs == 0 {
		ready.Note = "nothing waits"
	}
	served, held, in := l.oldest()
	oldest := kpi{Name: "Oldest ready", Note: "of served queues", Spark: spark(v.app.history.line("oldest"), "y")}
	if oldest.Value, oldest.Unit = measure(served.Truncate(100 * time.Millisecond)); served < 100*time.Millisecond {
		oldest.Value, oldest.Unit = "0", "s"
	}
	if held > 0 {
		oldest.Note = age(held) + " where " + in
		oldest.Title = "Of served queues. In " + heldIn[in] + ", where nothing starts, a job has been ready for " + age(held) + "."
	}
	running := kpi{Name: "Running", Value: counted(l.Running), Unit: "of " + count(l.Slots),
		Note: percent(float64(l.Running.Jobs), float64(l.Slots)) + " of the slots are busy", Spark: spark(v.app.history.line("running"), "")}
	if l.Slots == 0 {
		running.Unit, running.Note = "", "no slots: no worker is live"
	}
	workers := kpi{Name: "Workers", Value: count(l.Live()), Unit: "live", Spark: spark(v.app.history.line("workers"), "g")}
	workers.Note = versions(l)
	workers.Title = workers.Note
	return append(list, ready, oldest, running, workers), nil
}

// unmeasured is said where nothing was handed over in the span: workers do so once a minute.
const unmeasured = "no numbers yet"

func doneKPI(f *flow) kpi {
	k := kpi{Name: "Done", Note: unmeasured, Value: "–", Unit: "/min", Spark: spark(plainPoints(f.perMinute(pawl.MetricDone)), "g")}
	if !f.Known {
		return k
	}
	sum, in := f.latest()
	k.Value, k.Unit = rate(sum.Count(pawl.MetricDone), in)
	whole := f.lived()
	now, then := float64(sum.Count(pawl.MetricDone))/in.Minutes(), float64(f.Total.Count(pawl.MetricDone))/whole.Minutes()
	switch {
	case whole <= 6*time.Minute || then == 0:
		k.Note = count(f.Total.Count(pawl.MetricDone)) + " in the " + f.words()
	case now > then*1.005:
		k.Note = percent(now-then, then) + " above its average of the " + f.words()
	case now < then*0.995:
		k.Note = percent(then-now, then) + " below its average of the " + f.words()
	default:
		k.Note = "as on average in the " + f.words()
	}
	k.Title = k.Note
	return k
}

func notDoneKPI(f *flow) kpi {
	k := kpi{Name: "Not done", Value: "0", Unit: "/min", Note: "no failures",
		Spark: spark(plainPoints(f.perMinute(pawl.MetricFailed, pawl.MetricDead, pawl.MetricThrottled)), "r")}
	if !f.Known {
		k.Value, k.Note = "–", unmeasured
		return k
	}
	sum, in := f.latest()
	counts := []uint64{sum.Count(pawl.MetricFailed), sum.Count(pawl.MetricDead), sum.Count(pawl.MetricThrottled)}
	var shares []string
	k.Value, k.Unit, shares = rateOf(counts, in)
	var parts, all []string
	for i, word := range []string{"retried", "dead", "throttled"} {
		if counts[i] > 0 {
			parts, all = append(parts, shares[i]+" "+word), append(all, count(counts[i])+" "+word)
		}
	}
	if len(parts) > 0 {
		k.Note, k.Title = strings.Join(parts, ", "), strings.Join(all, ", ")+" in "+duration(in)
	}
	return k
}

// rateOf is the rate of some counts together, and what each has of it, in the same unit: as they are shown, they add up to it. What is
// too rare for that is less than the least that is shown.
func rateOf(counts []uint64, in time.Duration) (number, unit string, shares []string) {
	sum := uint64(0)
	for _, n := range counts {
		sum += n
	}
	number, unit = rate(sum, in)
	shares = make([]string, len(counts))
	whole, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil || sum == 0 {
		return number, unit, shares
	}
	least := 1.0 // that is shown
	if whole < 10 && unit == "/min" {
		least = .1
	}
	left := int(math.Round(whole / least))
	parts, rest := make([]int, len(counts)), make([]float64, len(counts))
	order := make([]int, len(counts))
	for i, n := range counts {
		exact := float64(n) / float64(sum) * math.Round(whole/least)
		parts[i], rest[i], order[i] = int(exact), exact-math.Floor(exact), i
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order[:min(max(left, 0), len(order))] {
		parts[i]++
	}
	for i, n := range parts {
		switch {
		case n == 0 && counts[i] > 0:
			shares[i] = "< " + strconv.FormatFloat(least, 'f', -1, 64)
		case least < 1:
			shares[i] = strings.TrimSuffix(strconv.FormatFloat(float64(n)*least, 'f', 1, 64), ".0")
		default:
			shares[i] = count(n)
		}
	}
	return number, unit, shares
}

// heldIn is where a job is ready that cannot start, by the state of its queue.
var heldIn = map[string]string{
	"frozen": "a frozen queue", "paused": "a paused queue", "unserved": "an unserved queue", "cooling": "a cooling queue",
}

// whyHeld says of the jobs that cannot start in which queues they are: "3 in paused, 121 in unserved ones".
func (l *look) whyHeld() string {
	of := map[string]pawl.Counted{}
	for i := range l.Queues {
		if q := &l.Queues[i]; isHeld(q) {
			state := queueState(q, &queueFlow{})
			of[state] = plus(of[state], q.Ready)
		}
	}
	var parts []string
	for _, state := range []string{"frozen", "paused", "unserved", "cooling"} {
		if n := of[state]; n.Jobs > 0 {
			parts = append(parts, counted(n)+" in "+state)
		}
	}
	return "Nothing starts in their queues: " + strings.Join(parts, ", ") + " ones."
}

// plainPoints are points for a spark: those of the time of which anything is known. Nothing within it is 0; the minute that goes on, or one
// before the first, would look like a fall.
func plainPoints(list []float64) []float64 {
	for len(list) > 0 && math.IsNaN(list[0]) {
		list = list[1:]
	}
	for len(list) > 0 && math.IsNaN(list[len(list)-1]) {
		list = list[:len(list)-1]
	}
	for i, v := range list {
		if math.IsNaN(v) {
			list[i] = 0
		}
	}
	return list
}

// versions says how many of the live workers run which build.
func versions(l *look) string {
	n := map[string]int{}
	var names []string
	for i := range l.Workers {
		if w := &l.Workers[i]; !w.Lost {
			name := cmp.Or(w.Worker.Version, "no version")
			if n[name]++; n[name] == 1 {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return "nobody works"
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(n[b]-n[a], strings.Compare(b, a)) })
	if len(names) == 1 {
		if names[0] == "no version" {
			return "none names its version"
		}
		return "all on " + plain(names[0], 20)
	}
	var parts []string
	for _, name := range names[:min(len(names), 3)] {
		parts = append(parts, fmt.Sprintf("%s on %d", plain(name, 20), n[name]))
	}
	return strings.Join(parts, ", ")
}
