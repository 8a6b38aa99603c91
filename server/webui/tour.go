package webui

import (
	"context"

	"github.com/pawlwork/pawl/server/auth"
)

// Tour is what a newcomer may try, of the demo.
type Tour interface {
	// Trials are the things to try, with those done that somebody has.
	Trials(ctx context.Context) []Trial
	// Do does what a trial offers, and says what it did.
	Do(ctx context.Context, offer string) (said string, err error)
	// Visited is told which page somebody looks at.
	Visited(path string)
}

// Trial is one thing to try. Text and Hint may have words in **stars**, which stand out, and in `ticks`, which are code. Text has one line
// of about 36 characters; Hint is seen when its trial is opened.
type Trial struct {
	Text, Hint string
	Done       bool
	Offer      string // what its button says, and does; empty: none
	Why        string // what the offer is good for
}

// trials are those of the tour, for its panel.
type trials struct {
	List []Trial
	Done int
	Next int // the first that nobody has done: it is open; -1: all are done
}

// tourActions are what trials offer.
var tourActions = []action{{
	noun: "tour", verb: "do", role: auth.Operator, label: "Do it", do: func(a *act) (*outcome, error) {
		if a.app.opts.Tour == nil {
			return nil, &fault{404, "Nothing was done.", "There is no demo here."}
		}
		said, err := a.app.opts.Tour.Do(a.ctx, a.get("offer"))
		if err != nil {
			return nil, err
		}
		return &outcome{Text: said}, nil
	},
}}

func loadTry(v *view) (any, error) {
	if v.app.opts.Tour == nil {
		return nil, nil
	}
	t := trials{List: v.app.opts.Tour.Trials(v.ctx), Next: -1}
	for i := range t.List {
		switch {
		case t.List[i].Done:
			t.Done++
		case t.Next < 0:
			t.Next = i
		}
	}
	return t, nil
}
