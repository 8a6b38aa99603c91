package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// DefaultWindow is how long ids and idempotency keys are remembered.
const DefaultWindow = 24 * time.Hour

// Options say how a backend behaves. The zero value is a good one.
type Options struct {
	Bounds stream.Bounds
	Window time.Duration // in which an id is accepted once [DefaultWindow]
	// Lease is how long a member lives without a call of Next; 0: until it is killed.
	Lease     time.Duration
	Versioned []string // patterns of the topics whose keys have versions
}

// epoch is the one life of every log: a process has it once.
const epoch = 1

// Backend is a log and its groups. It is safe for concurrent use.
type Backend struct {
	options   Options
	versioned []stream.TopicPattern

	mu       sync.Mutex
	log      []*stream.Event // the event at i has the position i+1
	bad      map[int64]error // by position: entries that cannot be read
	groups   map[string]*group
	seen     map[string]*accepted // by "i", topic and id, or "k", topic and idempotency key
	forget   []forgetting         // of seen, oldest first
	versions map[[2]string]int64  // of a topic and key
	delayed  []*accepted          // by due time
	refs     int64
}

// accepted is what is remembered of a publication.
type accepted struct {
	event *stream.Event
	reply stream.PublishReply
	due   time.Time // of a delayed one
	ttl   time.Duration
}

type forgetting struct {
	key  string
	what *accepted
	at   time.Time
}

// New makes an empty log. It panics where a pattern of Options.Versioned is wrong.
func New(o Options) *Backend {
	o.Window = cmp.Or(o.Window, DefaultWindow)
	b := &Backend{
		options: o, groups: map[string]*group{}, bad: map[int64]error{},
		seen: map[string]*accepted{}, versions: map[[2]string]int64{},
	}
	for _, text := range o.Versioned {
		p, err := stream.ParsePattern("Versioned", text)
		if err != nil {
			panic(err)
		}
		b.versioned = append(b.versioned, p)
	}
	return b
}

// Features implements stream.Backend.
func (b *Backend) Features() stream.Features {
	return stream.Features{
		IDs: true, Versions: len(b.versioned) > 0, Delay: true, Ordered: true, Positions: true, Types: true,
		Extend: b.options.Lease / 3,
	}
}

// Publish implements stream.Backend. Ids and idempotency keys are looked up first, the key
// before the id; then versions are compared. When one is refused, none is accepted.
func (b *Backend) Publish(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range drafts {
		if err := b.check(&drafts[i]); err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i+1, len(drafts), err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := now()
	b.expire(t)
	b.appendDue(t)
	call := &publishing{b: b, now: t, seen: map[string]*accepted{}, versions: map[[2]string]int64{}}
	for i := range drafts {
		if err := call.add(&drafts[i]); err != nil {
			return nil, fmt.Errorf("event %d of %d: %w", i+1, len(drafts), err)
		}
	}
	return call.commit(), nil
}

func (b *Backend) check(d *stream.Publication) error {
	err := d.Check(b.options.Bounds)
	if !d.Expect.IsAny() && !b.isVersioned(d.Topic) {
		err = errors.Join(err, job.Invalid("expected version", d.Expect, "can be had on topics of Options.Versioned only"))
	}
	return err
}

func (b *Backend) isVersioned(topic string) bool {
	return slices.ContainsFunc(b.versioned, func(p stream.TopicPattern) bool { return p.Match(topic) })
}

// publishing is a call of Publish before it is known to succeed.
type publishing struct {
	b        *Backend
	now      time.Time
	seen     map[string]*accepted
	keys     []string // of seen, in order
	versions map[[2]string]int64
	all      []*accepted
	fresh    []*accepted
}

func (p *publishing) add(d *stream.Publication) error {
	var keys []string
	if d.Idempotency != "" {
		keys = append(keys, "k"+d.Topic+"\x00"+d.Idempotency)
	}
	if d.Given {
		keys = append(keys, "i"+d.Topic+"\x00"+d.ID)
	}
	for _, key := range keys {
		before := p.seen[key]
		if before == nil {
			before = p.b.seen[key]
		}
		if before != nil {
			p.remember(keys, before)
			again := before.reply
			again.Duplicate = true
			p.all = append(p.all, &accepted{reply: again})
			return nil
		}
	}
	e := d.Event
	e.Data = slices.Clone(e.Data)
	e.Headers = cloneHeaders(e.Headers)
	a := &accepted{event: &e, reply: stream.PublishReply{ID: e.ID}, ttl: d.TTL}
	switch due := d.At; {
	case due.After(p.now):
		a.due = due
	case due.IsZero() && d.In > 0:
		a.due = p.now.Add(d.In)
	}
	a.reply.Delayed = !a.due.IsZero()
	if !a.reply.Delayed && p.b.isVersioned(e.Topic) {
		key := [2]string{e.Topic, e.Key}
		last, here := p.versions[key]
		if !here {
			last = p.b.versions[key]
		}
		if !d.Expect.Allows(last) {
			return fmt.Errorf("%w: key %q of %s has version %d, expected was %v",
				stream.ErrVersion, e.Key, e.Topic, last, d.Expect)
		}
		p.versions[key] = last + 1
	}
	p.remember(keys, a)
	p.all, p.fresh = append(p.all, a), append(p.fresh, a)
	return nil
}

func (p *publishing) remember(keys []string, a *accepted) {
	for _, key := range keys {
		if p.seen[key] == nil && p.b.seen[key] == nil {
			p.seen[key] = a
			p.keys = append(p.keys, key)
		}
	}
}

func (p *publishing) commit() []stream.PublishReply {
	b := p.b
	for _, a := range p.fresh {
		if a.reply.Delayed {
			b.delay(a, p.now)
		} else {
			b.appendEvent(a, p.now)
		}
	}
	for _, key := range p.keys {
		b.seen[key] = p.seen[key]
		b.forget = append(b.forget, forgetting{key, p.seen[key], p.now.Add(b.options.Window)})
	}
	replies := make([]stream.PublishReply, len(p.all))
	for i, a := range p.all {
		replies[i] = a.reply
	}
	return replies
}

// expire forgets ids and keys that are past the window.
func (b *Backend) expire(t time.Time) {
	for len(b.forget) > 0 && !t.Before(b.forget[0].at) {
		if f := b.forget[0]; b.seen[f.key] == f.what {
			delete(b.seen, f.key)
		}
		b.forget = b.forget[1:]
	}
}

// appendEvent puts an event behind all others, and tells the groups.
func (b *Backend) appendEvent(a *accepted, t time.Time) {
	e := a.event
	e.Appended = t
	if e.Time.IsZero() {
		e.Time = t
	}
	if e.Expires.IsZero() && a.ttl > 0 {
		e.Expires = t.Add(a.ttl)
	}
	if b.isVersioned(e.Topic) {
		key := [2]string{e.Topic, e.Key}
		b.versions[key]++
		e.Version = b.versions[key]
	}
	b.put(e)
	a.reply.Position, a.reply.Version, a.reply.Delayed = e.Position, e.Version, false
}

func (b *Backend) put(e *stream.Event) {
	e.Position = stream.At(epoch, int64(len(b.log)+1))
	b.log = append(b.log, e)
	for _, g := range b.groups {
		if b.takes(g, e) {
			g.changed()
		}
	}
}

// delay keeps an event until it is due.
func (b *Backend) delay(a *accepted, t time.Time) {
	i, _ := slices.BinarySearchFunc(b.delayed, a, func(x, y *accepted) int { return cmp.Or(x.due.Compare(y.due), -1) })
	b.delayed = slices.Insert(b.delayed, i, a)
	time.AfterFunc(a.due.Sub(t), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.appendDue(now())
	})
}

func (b *Backend) appendDue(t time.Time) {
	for len(b.delayed) > 0 && !t.Before(b.delayed[0].due) {
		a := b.delayed[0]
		b.delayed = b.delayed[1:]
		b.appendEvent(a, t)
	}
}

// PutBad appends an entry that cannot be read, as a foreign program might have written it:
// groups get it with why as its Bad.
func (b *Backend) PutBad(topic, key string, data []byte, why error) stream.Position {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := now()
	b.bad[int64(len(b.log)+1)] = why
	id := fmt.Sprint("bad-", len(b.log)+1)
	b.put(&stream.Event{ID: id, Topic: topic, Key: key, Data: slices.Clone(data), Time: t, Appended: t})
	return stream.At(epoch, int64(len(b.log)))
}

// Events are all that were appended, in order.
func (b *Backend) Events() []stream.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]stream.Event, len(b.log))
	for i, e := range b.log {
		list[i] = copyOf(e)
	}
	return list
}
