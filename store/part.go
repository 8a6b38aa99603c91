package store

import (
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/job"
)

// Part is a part of a list by id. No index has the waiting jobs of one queue by id,
// nor the running ones, and a list of one queue must not walk the others. So both
// are sorted where they are few (MaxSorted). Where one of them is more, the list is
// split: the waiting jobs of the queue by due, those behind gates by gate, the running
// ones by worker, then the rest by id. Every job that does not move meanwhile still
// comes once: a bookmark says in which part it is, so that it does not matter that a
// queue grows or shrinks between two pages.
//
//	page 1 finds 40,000 waiting jobs  PartWaiting, by due … PartRest, by id
//	they have become 10 meanwhile     it goes on in its part all the same
//	page 1 finds 10 of them           PartWhole, by id, to its end
//	they have become 40,000 by page 2 the parts, of the ids below page 1
//
// A list by due is split when there are many behind gates, which no index has by
// due: then they come last, gate by gate.
type Part uint8

// The parts, in their order.
const (
	PartWhole   Part = iota // everything, by id: the list is not split
	PartWaiting             // waiting jobs of the queue, by due
	PartGated               // waiting jobs of the queue behind gates, by gate
	PartRunning             // running jobs, by worker
	PartRest                // everything else, by id
)

func (p Part) String() string {
	switch p {
	case PartWhole:
		return "whole"
	case PartWaiting:
		return "waiting"
	case PartGated:
		return "gated"
	case PartRunning:
		return "running"
	case PartRest:
		return "rest"
	}
	return fmt.Sprintf("part(%d)", uint8(p))
}

// states is what a filter reads of a part.
func (p Part) states(f *Filter) (states []job.State) {
	live, archived := f.Reads()
	for _, s := range slices.Concat(live, archived) {
		of := PartRest
		switch {
		case s == job.Waiting && f.Queue != "":
			of = PartWaiting
		case s == job.Running:
			of = PartRunning
		}
		if of == p || of == PartWaiting && p == PartGated {
			states = append(states, s)
		}
	}
	return states
}

// Sorts lists the parts whose jobs a page would have to sort. The store counts each
// as far as MaxSorted, and splits the list where one has more.
func (p *Page) Sorts(f *Filter) (parts []Part) {
	if p.After.Part != PartWhole {
		return nil
	}
	switch p.Order {
	case ByID:
		parts = []Part{PartWaiting, PartGated, PartRunning}
	case ByDue:
		parts = []Part{PartGated}
	}
	return slices.DeleteFunc(parts, func(part Part) bool { return len(part.states(f)) == 0 })
}

// Of is what the page reads of a list: that of a part of it, where the list is to be
// split or the bookmark is in a part.
func (p Page) Of(f Filter, split bool) (Page, Filter) {
	switch {
	case p.Order != ByID && p.Order != ByDue:
		return p, f
	case split && p.Order == ByDue: // it goes on where it is
		p.After.Part, p.After.Below, p.After.Beyond = PartWaiting, p.After.ID, p.After.At
	case split:
		p.After = nextPart(&f, Bookmark{Below: p.After.ID})
	}
	switch p.After.Part {
	case PartWaiting:
		p.Order = ByDue
	case PartGated:
		p.Order = ByGate
	case PartRunning:
		p.Order = ByWorker
	case PartRest:
		p.Order = ByID
	case PartWhole:
		return p, f
	}
	f.States = p.After.Part.states(&f)
	return p, f
}

// nextPart is where the part behind that of a bookmark begins; zero when there is
// none.
func nextPart(f *Filter, before Bookmark) Bookmark {
	for part := before.Part + 1; part <= PartRest; part++ {
		if len(part.states(f)) == 0 {
			continue
		}
		at := Bookmark{Part: part, Below: before.Below, Beyond: before.Beyond}
		if part == PartRest {
			at.ID = before.Below
		}
		return at
	}
	return Bookmark{}
}

// End makes what was listed of a part the page of the whole list. The page is the
// one that Of returned, the filter the one that it was given.
func (l *Listed) End(of Page, f *Filter) {
	l.Order = of.Order
	at := of.After
	if l.More {
		l.Next.Part, l.Next.Below, l.Next.Beyond = at.Part, at.Below, at.Beyond
	} else if at.Part != PartWhole {
		if next := nextPart(f, at); next.Part != PartWhole {
			l.Stop(next)
		}
	}
}
