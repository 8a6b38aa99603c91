package pg

import (
	"strings"
	"sync"
)

// texts turns the SQL of this package into the server's: "pawl." becomes the
// quoted schema, also at the beginning of a text in quotes, "{now}" the clock as the
// statement began and "{instant}" the clock as it is read. Each text is made once.
type texts struct {
	Schema string // quoted
	clock  *Clock

	mu    sync.RWMutex
	ready map[string]string
}

func (t *texts) of(text string) string {
	t.mu.RLock()
	made, ok := t.ready[text]
	t.mu.RUnlock()
	if ok {
		return made
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready == nil {
		t.ready = map[string]string{}
	}
	made = strings.NewReplacer(
		"'pawl.", "'"+strings.ReplaceAll(t.Schema, "'", "''")+".",
		"pawl.", t.Schema+".",
		"{now}", t.clock.expression(),
		"{instant}", t.clock.instant(),
	).Replace(text)
	t.ready[text] = made
	return made
}

// forget makes every text anew, because the clock was moved.
func (t *texts) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ready = nil
}

// Legible makes a text that handlers wrote one that Postgres takes: valid UTF-8
// without zero bytes.
func Legible(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Plan is a statement that the server must run by its indexes, whatever it
// believes about the tables.
type Plan struct {
	Name    string
	Text    string
	Indexes []string
}
