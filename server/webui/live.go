package webui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/server/auth"
)

// Bounds of streams.
const (
	beatEvery  = 5 * time.Second
	streamTime = 30 * time.Minute
	writeTime  = 5 * time.Second
	maxStreams = 500
	maxBehind  = 32 // frames that a reader may be behind
	leastRest  = 50 // times what a look took, between looks: 2 % of a core at most
	calmTime   = 5 * time.Second
)

// hub has a feed for each (page, query, role) that somebody watches.
type hub struct {
	app *app

	mu      sync.Mutex
	feeds   map[string]*feed
	streams int
}

func newHub(a *app) *hub { return &hub{app: a, feeds: map[string]*feed{}} }

// feed looks at one page for all who watch it. It renders each region once a tick and sends those that changed.
type feed struct {
	view    view // of nobody in particular
	kick    chan struct{}
	stop    context.CancelFunc
	readers map[chan []byte]bool      // under hub.mu
	last    map[string]map[string]sum // of each region: of its items, or of "" for all of it
	whole   map[string][]byte         // frames with which a newcomer begins; under hub.mu
	seen    *look                     // what a calm page was made of
	again   time.Time                 // when it is looked at all the same
}

type sum [sha256.Size]byte

// live serves the stream of a page.
func (a *app) live(p *page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := a.identify(w, r, auth.Viewer)
		if !ok {
			return
		}
		v := view{app: a, page: p, path: strings.TrimPrefix(r.URL.RequestURI(), a.opts.Prefix), params: map[string]string{}, query: r.URL.Query(),
			live: true}
		v.path = strings.TrimPrefix(v.path, "/live")
		v.id = auth.Identity{Role: id.Role, Hidden: id.Hidden}
		for _, name := range paramsOf(p.path) {
			v.params[name] = r.PathValue(name)
		}
		reader, leave := a.hub.join(v)
		if reader == nil {
			w.Header().Set("Retry-After", "10")
			http.Error(w, fmt.Sprintf("%d pages are watched, which is the most", maxStreams), http.StatusServiceUnavailable)
			return
		}
		defer leave()
		stream(w, r, reader)
	})
}

// stream writes frames until the reader is dropped, leaves, or its time is over.
func stream(w http.ResponseWriter, r *http.Request, frames <-chan []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	write := func(frame []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := w.Write(frame)
		return err == nil && control.Flush() == nil
	}
	if !write([]byte("retry: 500\n\n")) {
		return
	}
	end := time.NewTimer(streamTime)
	defer end.Stop()
	for {
		select {
		case frame, ok := <-frames:
			if !ok || !write(frame) {
				return
			}
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// join begins to read a feed, which is begun where there is none; nil where there are too many readers.
func (h *hub) join(v view) (reader chan []byte, leave func()) {
	key := fmt.Sprint(v.page.name, "\n", v.path, "\n", v.id.Role, v.id.Hidden)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams >= maxStreams {
		return nil, nil
	}
	h.streams++
	f := h.feeds[key]
	if f == nil {
		ctx, stop := context.WithCancel(context.Background())
		f = &feed{view: v, kick: make(chan struct{}, 1), stop: stop, readers: map[chan []byte]bool{}, last: map[string]map[string]sum{},
			whole: map[string][]byte{}}
		h.feeds[key] = f
		go h.run(ctx, f)
	}
	reader = make(chan []byte, maxBehind)
	for _, name := range slices.Sorted(maps.Keys(f.whole)) {
		reader <- f.whole[name] // fewer than maxBehind
	}
	f.readers[reader] = true
	return reader, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.streams--
		delete(f.readers, reader)
		if len(f.readers) == 0 && h.feeds[key] == f {
			delete(h.feeds, key)
			f.stop()
		}
	}
}

// changed lets all feeds look at once: something was done.
func (h *hub) changed() {
	h.app.cache.clear()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.feeds {
		select {
		case f.kick <- struct{}{}:
		default:
		}
	}
}

// run looks until nobody reads any more. A page that takes long to look at is looked at less often; its beats come all the same, since
// who hears none believes the connection to be lost.
func (h *hub) run(ctx context.Context, f *feed) {
	regions := slices.Concat(f.view.page.regions, frameRegions)
	due := map[string]time.Time{}
	var beat, look time.Time
	for ctx.Err() == nil {
		began := time.Now()
		if !began.Before(beat) {
			beat = began.Add(beatEvery)
			h.beat(ctx, f)
		}
		if began = time.Now(); !began.Before(look) {
			worked := h.look(ctx, f, regions, due, began)
			look = time.Now().Add(max(time.Second, leastRest*worked))
		}
		timer := time.NewTimer(time.Until(earlier(beat, look)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.kick:
			clear(due)
			look = time.Time{}
		}
		timer.Stop()
	}
}

// look renders the regions that are due, and answers how long that took. How things stand is read for all pages: to wait for it is no
// work of this one.
func (h *hub) look(ctx context.Context, f *feed, regions []region, due map[string]time.Time, now time.Time) time.Duration {
	v := f.view
	v.ctx = ctx
	l, err := v.look()
	began := time.Now()
	if err == nil && v.page.calm {
		if l == f.seen && now.Before(f.again) {
			return 0
		}
		f.seen, f.again = l, now.Add(calmTime)
	}
	if err := v.begin(); err != nil || v.redirect() != "" {
		f.again = time.Time{}
		return time.Since(began)
	}
	for i := range regions {
		r := &regions[i]
		if r.every > 0 && !now.Before(due[r.name]) {
			due[r.name] = now.Add(r.every - 100*time.Millisecond)
			if err := h.send(f, r, &v); errors.Is(err, errLater) {
				delete(due, r.name)
				f.again = time.Time{}
			}
		}
	}
	return time.Since(began)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// beat tells the store's clock.
func (h *hub) beat(ctx context.Context, f *feed) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if now, err := h.app.e.Store().Now(ctx); err == nil {
		text, _ := json.Marshal(map[string]int64{"now": now.UnixMilli()})
		h.broadcast(f, "beat", frameOf("beat", text), nil)
	}
}

// send renders a region, and sends what changed. Where it fails it ends, or its template is at fault, which the page has told.
func (h *hub) send(f *feed, r *region, v *view) error {
	was, is := f.last[r.name], map[string]sum{}
	var changed, whole bytes.Buffer
	if r.items == nil {
		text, err := v.region(r)
		if err != nil {
			return err
		}
		is[""] = sumOf(text)
		whole.WriteString(string(text))
		if was[""] != is[""] {
			changed.WriteString(string(text))
		}
	} else {
		items, err := r.items(v)
		if err != nil {
			return err
		}
		var all, added strings.Builder
		for _, i := range items {
			text, err := v.render(r.name, i.data, ` hx-swap-oob="true"`)
			if err != nil {
				return err
			}
			is[i.id] = sumOf(text)
			_, known := was[i.id]
			switch {
			case r.grows && !known:
				added.WriteString(string(text))
			case was[i.id] != is[i.id]:
				changed.WriteString(string(text))
			}
			all.WriteString(string(text))
		}
		whole.WriteString(all.String())
		if r.grows {
			within := func(how, text string) string {
				return `<div hx-swap-oob="` + how + ":#" + r.name + `">` + strings.ReplaceAll(text, ` hx-swap-oob="true"`, "") + `</div>`
			}
			whole.Reset()
			whole.WriteString(within("innerHTML", all.String()))
			if was == nil {
				changed.WriteString(whole.String())
			} else if added.Len() > 0 {
				changed.WriteString(within("beforeend", added.String()))
			}
		}
	}
	f.last[r.name] = is
	if changed.Len() > 0 {
		h.broadcast(f, r.name, frameOf(r.name, changed.Bytes()), frameOf(r.name, whole.Bytes()))
	}
	return nil
}

// broadcast hands a frame to all readers. Who is too far behind is dropped, and comes back.
func (h *hub) broadcast(f *feed, name string, frame, whole []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if whole == nil {
		whole = frame
	}
	f.whole[name] = whole
	for reader := range f.readers {
		select {
		case reader <- frame:
		default:
			delete(f.readers, reader)
			close(reader)
		}
	}
}

func sumOf(text template.HTML) sum {
	return sha256.Sum256(timeText.ReplaceAll([]byte(text), []byte("$1")))
}

// frameOf is an event with its data.
func frameOf(name string, data []byte) []byte {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(bytes.ReplaceAll(line, []byte("\r"), nil))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
