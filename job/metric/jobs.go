package metric

import (
	"encoding/binary"
	"time"

	"github.com/pawlwork/pawl/job/histogram"
)

// Count is what is counted of jobs. The numbers are stored: never renumber.
type Count uint8

// The counts. A run that began is counted again when it ends, in one of the others.
const (
	Began     Count = iota // handlers that started
	Done                   // jobs that succeeded
	Failed                 // attempts that failed and are tried again
	Dead                   // jobs that failed for good
	Cancelled              // jobs that were stopped
	Snoozed                // runs that asked for later
	Throttled              // runs that were refused from outside, and let their queue or scope rest
	Released               // runs that went back unfinished: a stop, a store that failed, a place that was not free
	Lost                   // runs whose lease was lost while they ran
	Parked                 // runs whose arguments could not be read

	known
	maxCounts = 16 // those of later builds are kept and added as well
)

var countNames = [known]string{"began", "done", "failed", "dead", "cancelled", "snoozed", "throttled", "released", "lost", "parked"}

func (c Count) String() string {
	if c < known {
		return countNames[c]
	}
	return "unknown"
}

// Counts lists what is counted.
func Counts() []Count {
	list := make([]Count, known)
	for i := range list {
		list[i] = Count(i)
	}
	return list
}

// Jobs is what the jobs of a queue and kind came to.
type Jobs struct {
	counts [maxCounts]uint64
	// QueueTime is from when a job was due until its handler began, of each run;
	// RunTime what the handler took; TotalTime from the enqueue to the end, of jobs that
	// have ended.
	QueueTime, RunTime, TotalTime histogram.Histogram
}

// Count is how often something happened.
func (j *Jobs) Count(c Count) uint64 { return j.counts[c%maxCounts] }

// Add counts something once.
func (j *Jobs) Add(c Count) { j.counts[c%maxCounts]++ }

// AddMany counts something n times.
func (j *Jobs) AddMany(c Count, n uint64) { j.counts[c%maxCounts] = plus(j.counts[c%maxCounts], n) }

// Runs is how many runs ended, whatever they came to.
func (j *Jobs) Runs() uint64 { return j.RunTime.Count() }

// Empty reports whether nothing was counted.
func (j *Jobs) Empty() bool {
	return j.counts == [maxCounts]uint64{} && j.QueueTime.Count() == 0 && j.RunTime.Count() == 0 && j.TotalTime.Count() == 0
}

// Merge adds another.
func (j *Jobs) Merge(other *Jobs) {
	for i, n := range other.counts {
		j.counts[i] = plus(j.counts[i], n)
	}
	j.QueueTime.Merge(&other.QueueTime)
	j.RunTime.Merge(&other.RunTime)
	j.TotalTime.Merge(&other.TotalTime)
}

// Reset empties it and keeps its room.
func (j *Jobs) Reset() {
	j.counts = [maxCounts]uint64{}
	j.QueueTime.Reset()
	j.RunTime.Reset()
	j.TotalTime.Reset()
}

// Append writes the value.
func (j *Jobs) Append(b []byte) []byte {
	n := maxCounts
	for n > 0 && j.counts[n-1] == 0 {
		n--
	}
	b = append(b, format, byte(n))
	for _, c := range j.counts[:n] {
		b = binary.AppendUvarint(b, c)
	}
	b = j.QueueTime.Append(b)
	b = j.RunTime.Append(b)
	return j.TotalTime.Append(b)
}

// Decode adds what Append has written. It reads everything before it adds anything, and
// needs no memory of its own.
func (j *Jobs) Decode(data []byte) error {
	r := read(data)
	var counts [maxCounts]uint64
	n := r.number()
	if r.failed || n > maxCounts {
		return ErrUnreadable
	}
	for i := range n {
		counts[i] = r.number()
	}
	times := r.b
	for range 3 {
		r.skipHistogram()
	}
	if err := r.done(); err != nil {
		return err
	}
	for i, n := range counts {
		j.counts[i] = plus(j.counts[i], n)
	}
	for _, h := range []*histogram.Histogram{&j.QueueTime, &j.RunTime, &j.TotalTime} {
		times, _ = h.Decode(times)
	}
	return nil
}

func (r *reader) skipHistogram() {
	if r.failed {
		return
	}
	rest, err := histogram.Skip(r.b)
	r.b, r.failed = rest, err != nil
}

func (r *reader) histogram(h *histogram.Histogram) {
	if r.failed {
		return
	}
	rest, err := h.Decode(r.b)
	r.b, r.failed = rest, err != nil
}

// Ended counts a run that came to something, with its times; a negative one is none.
func (j *Jobs) Ended(c Count, queue, run, total time.Duration) {
	j.Add(c)
	for _, t := range []struct {
		of   *histogram.Histogram
		took time.Duration
	}{{&j.QueueTime, queue}, {&j.RunTime, run}, {&j.TotalTime, total}} {
		if t.took >= 0 {
			t.of.Add(t.took)
		}
	}
}
