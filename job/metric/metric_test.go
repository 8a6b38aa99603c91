package metric

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

// random draws a value of a class, as a process would make it in a minute.
func random(r *rand.Rand, c Class) Value {
	switch c {
	case OfJobs, OfAll:
		v := new(Jobs)
		for range r.IntN(20) {
			v.Ended(Count(r.IntN(int(known))), time.Duration(r.Int64N(1e12)), time.Duration(r.Int64N(1e10)), time.Duration(r.Int64N(1e12)-5e11))
		}
		return v
	case OfFailures:
		v := new(Failures)
		for range 1 + r.IntN(12) {
			v.Add(Sample{
				FailedJob: FailedJob{job.ID{byte(r.IntN(256))}, time.Unix(1_700_000_000+r.Int64N(60), 0)},
				Dead:      r.IntN(3) == 0, Message: fmt.Sprint("it failed ", r.IntN(9)),
				Version: fmt.Sprint("v", r.IntN(12)), Key: fmt.Sprint("k", r.IntN(12)),
			})
		}
		return v
	}
	v := &Load{Span: time.Minute, CPU: time.Duration(r.Int64N(1e9)).Truncate(time.Microsecond), Memory: r.Uint64N(1e9), Goroutines: r.Uint64N(100)}
	for range r.IntN(30) {
		v.Calls.Add(time.Duration(r.Int64N(1e8)))
	}
	return v
}

// Values add up to the same in any order and grouping: that is what lets rows be
// merged over processes and into hours whenever it suits.
func TestJ20_ValuesAddUpInAnyOrder(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 30))
		class := []Class{OfJobs, OfFailures, OfWorkers, OfAll}[seed%4]
		parts := make([][]byte, 2+r.IntN(7))
		for i := range parts {
			parts[i] = random(r, class).Append(nil)
		}
		add := func(list [][]byte) []byte {
			sum := New(class)
			for _, data := range list {
				if err := sum.Decode(data); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			return sum.Append(nil)
		}
		straight := add(parts)
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		cut := 1 + r.IntN(len(parts)-1)
		if grouped := add([][]byte{add(parts[cut:]), add(parts[:cut])}); !bytes.Equal(straight, grouped) {
			t.Fatalf("seed %d, %v: %x in turn, %x in groups", seed, class, straight, grouped)
		}
		if len(straight) > MaxData {
			t.Fatalf("%d bytes", len(straight))
		}
	}
}

func TestJ20_FailuresAreBounded(t *testing.T) {
	var f Failures
	start := time.Unix(1_700_000_000, 0).UTC()
	for i := range 1000 {
		f.Add(Sample{
			FailedJob: FailedJob{job.ID{byte(i / 256), byte(i)}, start.Add(time.Duration(i) * time.Second)}, Dead: i%10 == 0,
			Message: strings.Repeat("long ", 1000), Version: fmt.Sprintf("%03d%s", i, strings.Repeat("v", 1000)), Key: fmt.Sprintf("%03d", i),
		})
	}
	if n := len(f.Append(nil)); n > 4000 {
		t.Errorf("%d bytes", n)
	}
	if f.Failed != 1000 || f.Dead != 100 || !f.First.Time.Equal(start) || !f.Last.Time.Equal(start.Add(999*time.Second)) {
		t.Errorf("%+v", f)
	}
	if len(f.Keys) != maxNamed || f.Keys[0] != "000" || !f.MoreKeys || !f.MoreVersions {
		t.Errorf("keys %q, more %v", f.Keys, f.MoreKeys)
	}
}

func TestJ20_UnreadableValuesChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 31))
	for _, class := range []Class{OfJobs, OfFailures, OfWorkers, OfAll} {
		sum := random(r, class)
		before := sum.Append(nil)
		whole := random(r, class).Append(nil)
		for _, data := range [][]byte{nil, {}, {2}, whole[:len(whole)-1], append(bytes.Clone(whole), 0), make([]byte, MaxData+1)} {
			if err := sum.Decode(data); err == nil {
				t.Errorf("%v: %x was read", class, data)
			}
		}
		if !bytes.Equal(before, sum.Append(nil)) {
			t.Errorf("%v changed", class)
		}
	}
	if New(99) != nil {
		t.Error("a class of a later build was made up")
	}
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 32))
	for c := range 3 {
		f.Add(byte(c), random(r, Class(c+1)).Append(nil))
	}
	f.Fuzz(func(t *testing.T, c byte, data []byte) {
		v := New(Class(c%4 + 1))
		if v.Decode(data) != nil {
			return
		}
		again := v.Append(nil)
		back := New(Class(c%4 + 1))
		if len(again) > MaxData { // longer numbers than were written
			return
		}
		if err := back.Decode(again); err != nil {
			t.Fatalf("%x, written as %x: %v", data, again, err)
		}
	})
}
