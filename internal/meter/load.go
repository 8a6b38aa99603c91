package meter

import (
	"runtime/metrics"
	"time"

	"github.com/pawlwork/pawl/job/metric"
)

// loads is what was last told of the process.
type loads struct {
	since time.Time     // when that was
	cpu   time.Duration // at that time
}

func newLoads() loads { return loads{time.Now(), cpuTime()} }

// What Go knows of its process.
const (
	memoryTotal    = "/memory/classes/total:bytes"
	memoryReleased = "/memory/classes/heap/released:bytes"
	goroutines     = "/sched/goroutines:goroutines"
)

// take is what the process took since the last time.
func (l *loads) take() metric.Load {
	now, cpu := time.Now(), cpuTime()
	samples := []metrics.Sample{{Name: memoryTotal}, {Name: memoryReleased}, {Name: goroutines}}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0 // this Go does not tell
		}
		return samples[i].Value.Uint64()
	}
	load := metric.Load{
		Span: max(now.Sub(l.since), 0), CPU: max(cpu-l.cpu, 0),
		Memory: value(0) - min(value(0), value(1)), Goroutines: value(2),
	}
	l.since, l.cpu = now, cpu
	return load
}
