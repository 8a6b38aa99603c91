package webui

import (
	"fmt"
	"strconv"

	"github.com/pawlwork/pawl"
)

// numbered is a page of a list that is read as a whole: its rows are counted from the first.
type numbered struct {
	From         int // of the first row, from 0
	To           int // behind the last
	All          int // rows that match
	Newer, Older string
}

// numbered is the page that the query asks for, of so many rows each.
func (v *view) numbered(all, each int) (n numbered) {
	from, _ := strconv.Atoi(v.query.Get("after"))
	if from < 0 || from >= all {
		from = 0
	}
	n = numbered{From: from, To: min(from+each, all), All: all}
	if from > 0 {
		n.Newer = v.With("after", max(from-each, 0))
	}
	if n.To < all {
		n.Older = v.With("after", n.To)
	}
	return n
}

// says is which rows these are.
func (n *numbered) says(more bool, one, many string) string {
	return fmt.Sprintf("%s to %s of %s", count(n.From+1), count(n.To), plural(pawl.Counted{Jobs: n.All, More: more}, one, many))
}
