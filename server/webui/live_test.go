package webui

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store/sqlite"
)

// counter is an app with a page that counts how often it is looked at.
func counter(t *testing.T) (*app, *page, *atomic.Int64) {
	t.Helper()
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	looks := &atomic.Int64{}
	a := Handler(e, auth.Open("x")).(*app)
	p := &page{path: "/count", name: "count", load: func(*view) (any, error) { looks.Add(1); return nil, nil }}
	return a, p, looks
}

// A region's name is that of its events: those of the browser's own would close the stream, again and again.
func TestU7_NoRegionIsNamedAsAnEventOfTheBrowser(t *testing.T) {
	for _, p := range allPages() {
		for _, r := range slices.Concat(p.regions, frameRegions) {
			if slices.Contains([]string{"error", "open", "message", "beat"}, r.name) {
				t.Errorf("page %s has a region that is called %s", p.name, r.name)
			}
		}
	}
}

// next is the next frame with a name.
func next(t *testing.T, frames <-chan []byte, name string) string {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case frame, ok := <-frames:
			if !ok {
				t.Fatal("the reader was dropped")
			}
			if bytes.HasPrefix(frame, []byte("event: "+name+"\n")) {
				return string(frame)
			}
		case <-late:
			t.Fatal("no frame " + name)
		}
	}
}

func TestU7_OneLookServesAllWhoWatchTheSame(t *testing.T) {
	a, p, looks := counter(t)
	v := view{app: a, page: p, path: "/count", live: true, id: auth.Identity{Role: auth.Viewer}}
	var all []chan []byte
	for range 20 {
		frames, leave := a.hub.join(v)
		defer leave()
		all = append(all, frames)
	}
	for _, frames := range all {
		next(t, frames, "beat")
		next(t, frames, "side")
	}
	before := looks.Load()
	a.hub.changed() // they look once more
	for looks.Load() == before {
		<-time.After(time.Millisecond)
	}
	if n := looks.Load() - before; n > 2 {
		t.Errorf("%d looks for 20 readers", n)
	}
	other := v
	other.id.Role = auth.Admin
	frames, leave := a.hub.join(other)
	defer leave()
	next(t, frames, "side")
	if n := len(a.hub.feeds); n != 2 {
		t.Errorf("%d feeds for two roles", n)
	}
}

// A page that takes long is looked at less often. Its beats come all the same: who hears none for 12 s says that the connection is lost.
func TestU7_ASlowPageGoesOnBeating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, p, looks := counter(t)
		load := p.load
		p.load = func(v *view) (any, error) {
			time.Sleep(time.Second) // virtual: how long a look takes
			return load(v)
		}
		frames, leave := a.hub.join(view{app: a, page: p, path: "/count", live: true, id: auth.Identity{Role: auth.Viewer}})
		defer leave()
		next(t, frames, "side")
		began := time.Now()
		for range 4 {
			next(t, frames, "beat")
		}
		if took := time.Since(began); took > 4*beatEvery {
			t.Errorf("four beats took %v", took)
		}
		if n := looks.Load(); n > 1 {
			t.Errorf("%d looks meanwhile, want that it rests", n)
		}
	})
}

// A page that is all of the look is not made again from the same one, but for times and what else goes on by itself.
func TestU7_ACalmPageWaitsForTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, p, looks := counter(t)
		p.calm = true
		there := make(chan struct{})
		close(there)
		a.cache.entries["look"] = &entry{done: there, value: &look{Now: time.Now(), read: time.Now()}, until: time.Now().Add(time.Hour)}
		frames, leave := a.hub.join(view{app: a, page: p, path: "/count", live: true, id: auth.Identity{Role: auth.Viewer}})
		defer leave()
		next(t, frames, "side")
		for range 12 {
			next(t, frames, "beat")
		}
		if n, most := looks.Load(), int64(12*beatEvery/calmTime+2); n > most {
			t.Errorf("%d looks in a minute, want at most %d", n, most)
		}
		before := looks.Load()
		a.hub.changed() // something was done: there is another look
		next(t, frames, "beat")
		if looks.Load() == before {
			t.Error("it was not looked at after something was done")
		}
	})
}

func TestU7_ASlowReaderIsDroppedAndOthersGoOn(t *testing.T) {
	a, p, _ := counter(t)
	v := view{app: a, page: p, path: "/count", live: true, id: auth.Identity{Role: auth.Viewer}}
	slow, leaveSlow := a.hub.join(v)
	defer leaveSlow()
	quick, leave := a.hub.join(v)
	defer leave()
	next(t, quick, "side")
	a.hub.mu.Lock()
	var f *feed
	for _, f = range a.hub.feeds {
	}
	a.hub.mu.Unlock()
	for i := range 2 * maxBehind {
		a.hub.broadcast(f, "x", frameOf("x", fmt.Append(nil, i)), nil)
		next(t, quick, "x")
	}
	n := 0
	for range slow { // ends since it is closed
		n++
	}
	if n > maxBehind {
		t.Errorf("%d frames were kept", n)
	}
}

func TestU7_OnlyWhatChangedIsSent(t *testing.T) {
	a, _, _ := counter(t)
	f := &feed{readers: map[chan []byte]bool{}, last: map[string]map[string]sum{}, whole: map[string][]byte{}}
	frames := make(chan []byte, maxBehind)
	f.readers[frames] = true
	now := time.Date(2026, 11, 15, 14, 0, 0, 0, time.UTC)
	line := func(i int, text string) item {
		return item{fmt.Sprintf("l-%d", i), logLine{ID: fmt.Sprintf("l-%d", i), Level: "INFO", LogLine: pawl.LogLine{Text: text, Time: now}}}
	}
	items := []item{line(1, "one"), line(2, "two")}
	r := &region{name: "log", grows: true, items: func(*view) ([]item, error) { return items, nil }}
	v := &view{app: a, page: &page{}, ctx: t.Context(), Now: now}
	a.hub.send(f, r, v)
	if got := next(t, frames, "log"); !strings.Contains(got, "one") || !strings.Contains(got, "innerHTML:#log") {
		t.Error(got)
	}
	v.Now = now.Add(time.Hour) // times go on by themselves
	a.hub.send(f, r, v)
	items = append(items, line(3, "three"))
	a.hub.send(f, r, v)
	if got := next(t, frames, "log"); strings.Contains(got, "one") || !strings.Contains(got, "three") ||
		!strings.Contains(got, "beforeend:#log") {
		t.Error(got)
	}
	if sumOf(ago(now, now.Add(-time.Minute))) != sumOf(ago(now.Add(time.Hour), now.Add(-time.Minute))) ||
		sumOf(ago(now, now)) == sumOf(ago(now, now.Add(-time.Minute))) {
		t.Error("a time that goes on is a change, or another time is none")
	}
	if len(frames) > 0 {
		t.Errorf("more was sent: %s", <-frames)
	}
}
