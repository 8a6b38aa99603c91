package store

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
)

// StoredMetric is a row as a store has it.
type StoredMetric struct {
	MetricRow
	Width MetricWidth
	// Source and Flush are those of a part. What is merged has none; a merged row that
	// no build could read yet has some that tell it from others.
	Source job.ID
	Flush  int64
}

// RollTime is when a row is rolled up; zero for hours. It is the same for all minutes
// of an hour.
func RollTime(c metric.Class, w MetricWidth, start time.Time) time.Time {
	switch {
	case w == MetricPart:
		return start.Add(time.Minute + MetricMergeAfter)
	case w == MetricMinute && c == metric.OfWorkers:
		return start.Truncate(time.Hour).Add(time.Hour + LoadHoursAfter)
	case w == MetricMinute:
		return start.Truncate(time.Hour).Add(time.Hour + MetricHoursAfter)
	}
	return time.Time{}
}

// MetricExpiry is when a row goes.
func MetricExpiry(w MetricWidth, start time.Time) time.Time { return start.Add(w.Span() + KeepMetrics) }

// LeastRollUp is the smallest limit of a roll-up: more than the minutes of an hour,
// each with one beside it that could not be read.
const LeastRollUp = 121

// RollUpTogether is how many of the rows whose time has come, in the order in which
// stores take them (roll time, class, width, name, kind, start), are rolled up in one
// transaction: either parts or minutes, and of minutes those of whole hours. The last
// hour may have been cut by the limit, and waits.
func RollUpTogether(rows []StoredMetric, limit int) int {
	n := 0
	for n < len(rows) && rows[n].Width == rows[0].Width {
		n++
	}
	if n < len(rows) || n < limit || rows[0].Width == MetricPart {
		return n
	}
	last := hourOf(&rows[n-1])
	whole := n
	for whole > 0 && hourOf(&rows[whole-1]) == last {
		whole--
	}
	if whole == 0 { // they are all of one
		return n
	}
	return whole
}

// MetricPlace is where a merged row is: there is one at most.
type MetricPlace struct {
	Class metric.Class
	Width MetricWidth
	Start int64 // microseconds
	Name  string
	Kind  string
}

func placeOf(r *StoredMetric, w MetricWidth) MetricPlace {
	return MetricPlace{r.Class, w, r.Start.Truncate(w.Span()).UnixMicro(), r.Name, r.Kind}
}

func hourOf(r *StoredMetric) MetricPlace { return placeOf(r, MetricHour) }

// RollUpInto lists the places of the merged rows that rows may go into, each once.
func RollUpInto(taken []StoredMetric) (places []MetricPlace) {
	seen := map[MetricPlace]bool{}
	for i := range taken {
		r := &taken[i]
		into := []MetricPlace{hourOf(r)}
		if r.Width == MetricPart {
			into = append(into, placeOf(r, MetricMinute))
		}
		for _, p := range into {
			if !seen[p] {
				seen[p] = true
				places = append(places, p)
			}
		}
	}
	return places
}

// RollUpMetrics says what the rows taken, which their store removes, become. There are
// the merged rows of RollUpInto, which those of the answer replace.
//
//  1. A part goes into its minute, or into its hour where there is one already: no
//     minute stays beside its hour.
//  2. A minute goes into its hour.
//  3. What this build cannot read goes there too, as it is, as a row of its own: a
//     newer build may read it. So does what would have to be added to such a row.
func RollUpMetrics(taken, there []StoredMetric) (put []StoredMetric) {
	type sum struct {
		value metric.Value // nil where there is what cannot be read
		added bool
	}
	found := map[MetricPlace]*StoredMetric{}
	for i := range there {
		found[placeOf(&there[i], there[i].Width)] = &there[i]
	}
	sums, order := map[MetricPlace]*sum{}, []MetricPlace(nil)
	for i := range taken {
		r := &taken[i]
		p := hourOf(r)
		if r.Width == MetricPart && found[p] == nil {
			p = placeOf(r, MetricMinute)
		}
		s := sums[p]
		if s == nil {
			s = &sum{value: metric.New(r.Class)}
			if old := found[p]; old != nil && s.value != nil && s.value.Decode(old.Data) != nil {
				s.value = nil
			}
			sums[p] = s
			order = append(order, p)
		}
		if s.value != nil && s.value.Decode(r.Data) == nil {
			s.added = true
			continue
		}
		beside := p.Row(r.Data)
		beside.Source, beside.Flush = digest(r), 1
		put = append(put, *beside)
	}
	for _, p := range order {
		if s := sums[p]; s.added {
			put = append(put, *p.Row(s.value.Append(nil)))
		}
	}
	return put
}

// Row is the merged row at the place.
func (p MetricPlace) Row(data []byte) *StoredMetric {
	return &StoredMetric{Width: p.Width, MetricRow: MetricRow{
		Class: p.Class, Start: time.UnixMicro(p.Start).UTC(), Name: p.Name, Kind: p.Kind, Data: data,
	}}
}

// digest tells a row from every other of its class, name and kind.
func digest(r *StoredMetric) (id job.ID) {
	h := fnv.New128a()
	h.Write([]byte{byte(r.Width)})
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(r.Start.UnixMicro())))
	h.Write(r.Source[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(r.Flush)))
	h.Sum(id[:0])
	return id
}
