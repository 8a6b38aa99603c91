package meter

import (
	"time"

	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// name is a queue or fingerprint, and a kind.
type name struct{ name, kind string }

// minute is what happened in one.
type minute struct {
	start, end time.Time
	series     map[name]*metric.Jobs // may have some of an earlier minute, empty, for their room
	pruned     bool                  // of those
	failures   map[name]*metric.Failures
}

func newMinute() *minute {
	return &minute{series: map[name]*metric.Jobs{}, failures: map[name]*metric.Failures{}}
}

// jobs is the value of a queue and kind, or of all others beyond the bound.
func (m *minute) jobs(queue, kind string, most int) *metric.Jobs {
	if v := m.series[name{queue, kind}]; v != nil {
		return v
	}
	n := name{queue, kind}
	if len(m.series) >= most && !m.pruned {
		m.prune()
	}
	if len(m.series) >= most {
		n = name{metric.Other, metric.Other}
		if v := m.series[n]; v != nil {
			return v
		}
	}
	v := new(metric.Jobs)
	m.series[n] = v
	return v
}

// prune drops what this minute has not needed.
func (m *minute) prune() {
	m.pruned = true
	for n, v := range m.series {
		if v.Empty() {
			delete(m.series, n)
		}
	}
}

// alike is the value of a fingerprint and kind, or of all others beyond the bound.
func (m *minute) alike(fingerprint, kind string, most int) *metric.Failures {
	n := name{fingerprint, kind}
	if m.failures[n] == nil && len(m.failures) >= most {
		n = name{metric.Other, metric.Other}
	}
	v := m.failures[n]
	if v == nil {
		v = new(metric.Failures)
		m.failures[n] = v
	}
	return v
}

// merge adds a later minute.
func (m *minute) merge(later *minute, names, failures int) {
	for n, v := range later.series {
		if !v.Empty() {
			m.jobs(n.name, n.kind, names).Merge(v)
		}
	}
	for n, v := range later.failures {
		m.alike(n.name, n.kind, failures).Merge(v)
	}
}

// rows are what it has to hand over.
func (m *minute) rows() (list []store.MetricRow) {
	var all metric.Jobs
	for n, v := range m.series {
		if !v.Empty() {
			all.Merge(v)
			list = append(list, store.MetricRow{Class: metric.OfJobs, Start: m.start, Name: n.name, Kind: n.kind, Data: v.Append(nil)})
		}
	}
	if !all.Empty() {
		list = append(list, store.MetricRow{Class: metric.OfAll, Start: m.start, Data: all.Append(nil)})
	}
	for n, v := range m.failures {
		list = append(list, store.MetricRow{Class: metric.OfFailures, Start: m.start, Name: n.name, Kind: n.kind, Data: v.Append(nil)})
	}
	return list
}

func (m *minute) sameTime(other *minute) bool { return m.start.Equal(other.start) }

// clear empties it.
func (m *minute) clear() {
	clear(m.series)
	clear(m.failures)
}

// reset empties it for another minute, and keeps the room of what this one needed.
func (m *minute) reset() {
	m.prune()
	for _, v := range m.series {
		v.Reset()
	}
	clear(m.failures)
	m.pruned = false
}
