package feed

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// aheadKeeps is for how long what was read may be taken. What is erased or removed meanwhile
// must not turn up much later.
const aheadKeeps = time.Second

// ahead reads what the next turn takes, while handlers work and beside the turn before. It
// begins where two turns found the shelf as they had left it, and the second was full: nobody
// else takes from it, and there is more. It ends where fewer events come than were asked for.
//
// Nothing depends on it: the store takes what was read only where the shelf is at its place.
type ahead struct {
	store  store.GroupAhead // nil: it cannot be done
	match  *stream.Matcher
	from   int   // Config.Ahead
	place  int64 // where the last turn left the shelf; -1: nobody knows
	read   []chunk
	coming chan chunk // holds the next when it has come; nil: none does
	cancel context.CancelFunc
	list   []*store.Given // for the turn that is being made
	room   []*store.Given // that nobody uses any more
}

// chunk is what was read at once.
type chunk struct {
	store.Ahead
	begun time.Time
	more  bool           // behind it, maybe
	rest  []*store.Given // room that was not needed
}

// take gives what a turn for n deliveries may take, and reads on where that is all.
func (a *ahead) take(ctx context.Context, n int) *store.Ahead {
	if n < 1 {
		return nil
	}
	left := 0
	for i := range a.read {
		left += len(a.read[i].Given)
	}
	if left < n && a.coming != nil {
		left += a.receive()
	}
	a.list = a.list[:0]
	for i := range a.read {
		c := &a.read[i]
		if c.Knew != a.read[0].Knew || time.Since(c.begun) > aheadKeeps {
			break
		}
		a.list = append(a.list, c.Given[:min(len(c.Given), n-len(a.list))]...)
	}
	if len(a.list) == 0 {
		a.drop()
		return nil
	}
	if last := &a.read[len(a.read)-1]; left-n < n && n >= a.from && last.more && a.coming == nil {
		a.begin(ctx, last.Given[len(last.Given)-1].Event.Position.Seq(), n)
	}
	return &store.Ahead{Place: a.place, Given: a.list, Knew: a.read[0].Knew}
}

// taken hears what became of it, and begins.
func (a *ahead) taken(ctx context.Context, t *store.Turn, r *store.TurnReply) {
	defer clear(a.list)
	if a.store == nil || r.Upto < 0 {
		return
	}
	stood, at := r.From == a.place, a.place
	if r.Taken > 0 {
		at = a.list[r.Taken-1].Event.Position.Seq()
		a.forget(r.Taken)
	}
	a.place = r.Upto
	if at != r.Upto {
		a.drop()
	}
	fresh := r.Taken
	for i := range r.Given {
		if !r.Given[i].Row {
			fresh++
		}
	}
	if stood && fresh == t.Want.N && fresh >= a.from && len(a.read) == 0 && a.coming == nil {
		a.begin(ctx, a.place, fresh)
	}
}

// begin reads behind a place.
func (a *ahead) begin(ctx context.Context, place int64, n int) {
	ctx, a.cancel = context.WithTimeout(ctx, aheadKeeps)
	coming, room := make(chan chunk, 1), a.takeRoom(n)
	a.coming = coming
	go func() {
		c := chunk{begun: time.Now()}
		defer func() {
			if recover() != nil {
				c.Given = nil // a turn that reads says what is wrong
			}
			c.more, c.rest = len(c.Given) == n, room[len(c.Given):]
			coming <- c
		}()
		var err error
		if c.Ahead, err = a.store.ReadAhead(ctx, a.match, place, room); err != nil {
			c.Given = nil
		}
	}()
}

// receive waits for what is coming, and says how much it is.
func (a *ahead) receive() int {
	c := <-a.coming
	a.cancel()
	a.room = append(a.room, c.rest...)
	if a.coming = nil; len(c.Given) > 0 {
		a.read = append(a.read, c)
	}
	return len(c.Given)
}

// use takes room that nobody uses any more, where something is read ahead.
func (a *ahead) use(g *store.Given) {
	if (len(a.read) > 0 || a.coming != nil) && len(a.room) < store.MaxTurn {
		*g = store.Given{}
		a.room = append(a.room, g)
	}
}

// takeRoom is room for n: what nobody uses any more, and as much beside it as is missing.
func (a *ahead) takeRoom(n int) []*store.Given {
	used := min(n, len(a.room))
	room := make([]*store.Given, used, n)
	end := len(a.room) - used
	copy(room, a.room[end:])
	clear(a.room[end:])
	a.room = a.room[:end]
	fresh := make([]store.Given, n-used)
	for i := range fresh {
		room = append(room, &fresh[i])
	}
	return room
}

// forget takes n off that were taken.
func (a *ahead) forget(n int) {
	for n > 0 {
		c := &a.read[0]
		k := min(n, len(c.Given))
		if c.Given, n = c.Given[k:], n-k; len(c.Given) == 0 {
			a.read = append(a.read[:0], a.read[1:]...)
		}
	}
}

// drop forgets all of it.
func (a *ahead) drop() {
	a.read, a.room = nil, nil
	if a.coming != nil {
		a.cancel()
		a.coming = nil
	}
}
