package hints

import (
	"encoding/json"
	"time"

	"github.com/pawlwork/pawl/store"
)

// maxTold bounds a message; beyond it the message is "look at everything".
// Postgres takes 8000 bytes.
const maxTold = 7000

// message is what processes tell each other. It is never needed: who misses one
// finds out by polling. Builds of several ages may listen to one channel, so a
// build adds subjects and fields and never changes one; what it does not know it
// ignores.
type message struct {
	By    string `json:"by"` // the store that tells; empty: everybody is to hear it
	Hints []told `json:"h"`
}

type told struct {
	Subject  store.Subject `json:"s,omitempty"`
	Name     string        `json:"n,omitempty"`
	Priority int           `json:"p,omitempty"`
	Due      int64         `json:"d,omitempty"` // microseconds since the epoch
}

func (m *message) add(hint store.Hint) {
	t := told{Subject: hint.Subject, Name: hint.Name, Priority: hint.Priority}
	if !hint.Due.IsZero() {
		t.Due = hint.Due.UnixMicro()
	}
	m.Hints = append(m.Hints, t)
}

func (m *message) encode() string {
	text, err := json.Marshal(m)
	if err != nil { // strings and numbers
		panic("postgres: encode a notification: " + err.Error())
	}
	if len(text) > maxTold {
		return (&message{By: m.By, Hints: []told{{Subject: store.SubjectAll}}}).encode()
	}
	return string(text)
}

// hear takes a message over: frontiers first, so that a look it wakes sees it.
func (r *Room) hear(text string, tell func(store.Hint)) {
	var m message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		m = message{Hints: []told{{Subject: store.SubjectAll}}} // nobody writes that: look, then
	}
	if m.By == r.instance {
		return
	}
	for _, t := range m.Hints {
		hint := store.Hint{Subject: t.Subject, Name: t.Name, Priority: t.Priority}
		switch t.Subject {
		case store.SubjectAll:
			r.frontier.Drop()
			r.intents()
		case store.SubjectQueue:
			switch {
			case t.Name == "":
				r.frontier.Drop()
			case t.Due == 0:
				r.frontier.Wake(t.Name)
			default:
				hint.Due = time.UnixMicro(t.Due).UTC()
				r.frontier.Lower(t.Name, t.Priority, hint.Due)
			}
		case store.SubjectIntent:
			r.intents()
		case store.SubjectJob, store.SubjectMembers, store.SubjectSetting, store.SubjectTopic, store.SubjectDelay, store.SubjectGroup:
		default:
			continue // of a newer build, which knows who is to hear it
		}
		tell(hint)
	}
}
