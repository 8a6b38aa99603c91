package feed

import (
	"cmp"
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// delivery is one that is open.
type delivery struct {
	ref      int64
	given    *store.Given
	stripe   int16
	failures int
	losses   int
	row      bool // the store has a row of it
	alone    bool // it came alone, and was not kept since
	told     bool // a transaction was told to acknowledge it
	named    bool // in the call that is checked
	closed   bool // by the turn that is being made
	free     bool // and nobody has its event
	kept     bool // by it
}

// of is the open delivery of a ref. f.mu is held.
func (f *Feed) of(ref int64) *delivery {
	i, found := slices.BinarySearchFunc(f.open, ref, func(d *delivery, ref int64) int { return cmp.Compare(d.ref, ref) })
	if !found {
		return nil
	}
	return f.open[i]
}

func (d *delivery) seq() int64 { return d.given.Event.Position.Seq() }

// opened takes in what the store gave. f.mu is held.
func (f *Feed) opened(g *store.Given) stream.Delivery {
	f.refs++
	d := f.blank()
	*d = delivery{ref: f.refs, given: g, stripe: g.Stripe, failures: g.Failures, losses: g.Losses, row: g.Row, alone: g.Alone}
	f.open = append(f.open, d)
	return stream.Delivery{Event: &g.Event, Ref: f.refs, Failures: g.Failures, Losses: g.Losses, Alone: g.Alone, Bad: g.Bad}
}

// blank is a delivery of before, or a new one. f.mu is held.
func (f *Feed) blank() *delivery {
	if len(f.free) == 0 {
		return new(delivery)
	}
	end := len(f.free) - 1
	d := f.free[end]
	f.free = f.free[:end]
	return d
}
