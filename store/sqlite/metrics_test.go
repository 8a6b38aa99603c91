package sqlite

import (
	"strings"
	"testing"

	"github.com/pawlwork/pawl/store/sqlite/internal/metrics"
)

// What one queue or kind came to is read without the rows of the others: both ends of the range are sought behind the name.
func TestJ20_OneNameIsReadWithoutTheOthers(t *testing.T) {
	s := open(t, newFile(t))
	for i, text := range metrics.ReadTexts() {
		want := []string{"(namespace=? AND class=? AND width=? AND name=? AND start>? AND start<?)",
			"(namespace=? AND class=? AND width=? AND kind=? AND start>? AND start<?)"}[i]
		q := s.writer.conn.Once("EXPLAIN QUERY PLAN " + text)
		steps := 0
		for ; q.Step(); steps++ {
			if step := q.ColText(3); !strings.HasPrefix(step, "SEARCH") || !strings.HasSuffix(step, want) {
				t.Errorf("%s, want a search by %s\nin %s", step, want, text)
			}
		}
		if err := q.Close(); err != nil || steps != 1 {
			t.Errorf("%d steps, %v: %s", steps, err, text)
		}
	}
}
