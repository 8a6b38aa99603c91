package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Rates are of each caller, come back with time, and take bounded memory.
func TestU5_RatesAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := newRates(5, func() time.Time { return now })
	taken := func(caller string) (n int) {
		for range 100 {
			if r.take(caller) {
				n++
			}
		}
		return n
	}
	if n := taken("ann"); n != 10 {
		t.Errorf("%d at once", n)
	}
	if n := taken("bob"); n != 10 {
		t.Errorf("%d of another", n)
	}
	now = now.Add(time.Second)
	if n := taken("ann"); n != 5 {
		t.Errorf("%d a second later", n)
	}
	now = now.Add(-time.Hour) // a clock that is set back gives nothing and takes nothing
	if n := taken("ann"); n != 0 {
		t.Errorf("%d after the clock was set back", n)
	}
	now = now.Add(2 * time.Hour)
	for i := range 3 * maxBuckets {
		r.take(fmt.Sprint("address ", i))
	}
	if len(r.buckets) > maxBuckets {
		t.Errorf("%d buckets", len(r.buckets))
	}
	if r.take("one more") {
		t.Error("those who find no bucket of their own share one, and it is empty")
	}
	now = now.Add(2 * time.Second)
	if !r.take("one more") || len(r.buckets) != 1 {
		t.Errorf("%d buckets are kept that are full again", len(r.buckets))
	}
}

func TestU5_RefusalsAreLoggedOnceAnInterval(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var log bytes.Buffer
	f := newRefusals(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	for range 7 {
		f.tell("192.0.2.1", "/session", "x")
	}
	f.tell("192.0.2.2", "/session", "x")
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines of two addresses: %s", n, log.String())
	}
	now = now.Add(refusalEvery)
	f.tell("192.0.2.1", "/session", "x")
	if !strings.Contains(log.String(), "address=192.0.2.1 path=/session why=x more=6") {
		t.Errorf("those between are not counted: %s", log.String())
	}
	log.Reset()
	for i := range 3 * maxRefusals {
		f.tell(fmt.Sprint("address ", i), "/session", "x")
	}
	if n := strings.Count(log.String(), "\n"); len(f.list) > maxRefusals+1 || n > maxRefusals+1 {
		t.Errorf("%d addresses are kept, and %d lines", len(f.list), n)
	}
}
