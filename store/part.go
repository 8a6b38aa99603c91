package store

import (
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/job"
)

// Part is a part of a list by id. No index has the waiting jobs of one queue by id,
// and a list of one queue must not walk the others. So they are sorted where they
// are few (MaxSorted). Where they are more, the list has two parts: first the
// waiting jobs of that queue by due, then the rest by id. Every job that does not
// move meanwhile still comes once: a bookmark says in which part it is, so that it
// does not matter that a queue grows or shrinks between two pages.
//
//	page 1 finds 40,000 waiting jobs  PartLong, by due … PartRest, by id
//	they have become 10 meanwhile     it goes on in its part all the same
//	page 1 finds 10 of them           PartWhole, by id, to its end
//	they have become 40,000 by page 2 PartLong, of ids below page 1; then PartRest
type Part uint8

// The parts.
const (
	PartWhole Part = iota // everything, by id
	PartLong              // waiting jobs of the queue, by due
	PartRest              // everything else, by id
)

func (p Part) String() string {
	switch p {
	case PartWhole:
		return "whole list"
	case PartLong:
		return "long queue"
	case PartRest:
		return "rest"
	}
	return fmt.Sprintf("part(%d)", uint8(p))
}

// Sorts reports whether a page would have to sort the waiting jobs of its queue. The
// store counts them then, as far as MaxSorted, to tell whether the queue is long.
func (p *Page) Sorts(f *Filter) bool {
	live, _ := f.Reads()
	return p.Order == ByID && p.After.Part == PartWhole && f.Queue != "" && slices.Contains(live, job.Waiting)
}

// Of is what the page reads of a list: that of a part of it, where the queue is
// long or a bookmark is in a part.
func (p Page) Of(f Filter, long bool) (Page, Filter) {
	if p.Order != ByID {
		return p, f
	}
	if long {
		p.After = Bookmark{Part: PartLong, Below: p.After.ID}
	}
	switch p.After.Part {
	case PartLong:
		p.Order, f.States = ByDue, []job.State{job.Waiting}
	case PartRest:
		f.States = f.rest()
	}
	return p, f
}

// rest is the states that a filter reads beside waiting.
func (f *Filter) rest() (states []job.State) {
	live, archived := f.Reads()
	for _, s := range slices.Concat(live, archived) {
		if s != job.Waiting {
			states = append(states, s)
		}
	}
	return states
}

// End makes what was listed of a part the page of the whole list. The page and the
// filter are those that Of returned and was given.
func (l *Listed) End(of Page, asked *Filter) {
	l.Order = of.Order
	part := of.After.Part
	switch {
	case l.More:
		l.Next.Part, l.Next.Below = part, of.After.Below
	case part == PartLong && len(asked.rest()) > 0:
		l.Stop(Bookmark{Part: PartRest, ID: of.After.Below})
	}
}
