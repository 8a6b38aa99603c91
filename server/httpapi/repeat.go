package httpapi

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// A write that comes with an Idempotency-Key may be sent again:
//
//   - The answer is remembered here, and the repetition is answered with it. That goes for
//     every write, and is as good as this process's memory: a restart forgets it.
//   - What enqueues or begins something (jobs, triggers, operations) passes the key on to
//     the store besides, so that a restart or another server changes nothing.

const (
	keyHeader    = "Idempotency-Key"
	repeatHeader = "Idempotent-Replayed" // of an answer that was given before

	// keptFor is how long a repetition is recognised.
	keptFor = 24 * time.Hour

	maxKey     = 200
	maxAnswers = 10_000
	maxMemory  = 16 << 20 // bytes of answers, as JSON
)

// errKeyReused: the key came before, with another request.
var errKeyReused = errors.New("came with another request before: a key is for one request and its repetitions")

// repetition is what the header of a request says, and where the answer's headers are.
type repetition struct {
	key     string
	headers http.Header
}

type repetitionKey struct{}

// keyFrom is the idempotency key of a request; empty: it has none.
func keyFrom(ctx context.Context) string {
	r, _ := ctx.Value(repetitionKey{}).(repetition)
	return r.key
}

// storedKey is the key as the store gets it. No other caller, route or object shares it.
func storedKey(ctx context.Context, of ...string) string {
	return "idempotency:" + hex.EncodeToString(job.UniqueHash(append(of, auth.From(ctx).Name, keyFrom(ctx))...))
}

// keyParameter documents the header.
func keyParameter() *huma.Param {
	longest := maxKey
	return &huma.Param{
		Name: keyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
		Description: "of the caller's choice: the same request with the same key within 24 hours changes nothing more",
	}
}

// withKey puts the key of a write into its context.
func withKey(ctx context.Context, op *operation, r *http.Request, w http.ResponseWriter) (context.Context, *Problem) {
	key := r.Header.Get(keyHeader)
	switch {
	case key == "" || op.method == http.MethodGet:
		return ctx, nil
	case op.keyless:
		return ctx, newProblem(http.StatusUnprocessableEntity, "invalid", keyHeader+": "+op.id+" takes none: it may be sent again as it is")
	case len(key) > maxKey || !utf8.ValidString(key):
		return ctx, newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("%s %.20q…: must be text of at most %d bytes", keyHeader, key, maxKey))
	}
	return context.WithValue(ctx, repetitionKey{}, repetition{key, w.Header()}), nil
}

// answers remembers what writes with a key were answered.
type answers struct {
	mu    sync.Mutex
	known map[string]*list.Element
	order list.List // of *answered, the oldest first
	bytes int
	now   func() time.Time
}

// answered is one write: under way until done is closed.
type answered struct {
	of      string
	request [sha256.Size]byte
	since   time.Time
	done    chan struct{}
	out     any // nil: it failed, so that there is nothing to repeat
	size    int
}

// claim makes the caller the one who does a write, or returns who did it or does it.
func (a *answers) claim(of string, request [sha256.Size]byte) (w *answered, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for e := a.order.Front(); e != nil && now.Sub(e.Value.(*answered).since) >= keptFor; e = a.order.Front() {
		a.drop(e)
	}
	if e := a.known[of]; e != nil {
		return e.Value.(*answered), false
	}
	for e := a.order.Front(); e != nil && (len(a.known) >= maxAnswers || a.bytes > maxMemory); e = a.order.Front() {
		a.drop(e)
	}
	w = &answered{of: of, request: request, since: now, done: make(chan struct{})}
	if a.known == nil {
		a.known = map[string]*list.Element{}
	}
	a.known[of] = a.order.PushBack(w)
	return w, true
}

// end keeps what came of a write; what failed is forgotten, and may be tried again.
func (a *answers) end(w *answered, out any, size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.known[w.of]
	switch there := e != nil && e.Value.(*answered) == w; {
	case out != nil:
		if w.out = out; there {
			w.size = size
			a.bytes += size
		}
	case there:
		a.drop(e)
	}
	close(w.done)
}

func (a *answers) drop(e *list.Element) {
	w := a.order.Remove(e).(*answered)
	a.bytes -= w.size
	delete(a.known, w.of)
}

// once does a write, or answers as it was answered before.
func once[I, O any](ctx context.Context, a *answers, op *operation, in *I, do func(context.Context, *I) (*O, error)) (*O, error) {
	given, ok := ctx.Value(repetitionKey{}).(repetition)
	if !ok {
		return do(ctx, in)
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	request, who := sha256.Sum256(text), auth.From(ctx)
	of := string(job.UniqueHash(op.id, who.Name, who.Role.String(), fmt.Sprint(who.Hidden), given.key))
	for {
		w, mine := a.claim(of, request)
		switch {
		case w.request != request:
			return nil, fmt.Errorf("%s %q %w", keyHeader, given.key, errKeyReused)
		case mine:
			return first(ctx, a, w, in, do)
		}
		select {
		case <-w.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if out, ok := w.out.(*O); ok {
			given.headers.Set(repeatHeader, "true")
			return asRepeated(out), nil
		}
	}
}

// first does a write and remembers its answer.
func first[I, O any](ctx context.Context, a *answers, w *answered, in *I, do func(context.Context, *I) (*O, error)) (out *O, err error) {
	var keep any
	size := 0
	defer func() { a.end(w, keep, size) }() // also after a panic: nobody waits for ever
	if out, err = do(ctx, in); err != nil {
		return nil, err
	}
	text, _ := json.Marshal(out) // as it is about to be sent
	keep, size = out, len(text)
	return out, nil
}

// asRepeated is an answer as the repetition gets it: nothing was added by that.
func asRepeated[O any](out *O) *O {
	if r, ok := any(out).(*body[Receipt]); ok {
		again := *r
		again.Body.Duplicate = true
		return any(&again).(*O)
	}
	return out
}
