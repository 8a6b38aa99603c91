package pgproxy

import (
	"bytes"
	"strings"
)

// unit is what a client sends until it wants an answer.
type unit struct {
	messages   []message
	taken      int      // messages that were passed on
	statements []string // of the transaction so far
	commits    bool
	last       int // number of messages before the one that commits
	fate       Fate
}

// take returns the messages up to number n that were not taken yet.
func (u *unit) take(n int) []message {
	if n <= u.taken {
		return nil
	}
	some := u.messages[u.taken:n]
	u.taken = n
	return some
}

// session is what a client's messages say about its transaction.
type session struct {
	prepared, portals map[string]string
	statements        []string // of the transaction that is open
	open              bool     // between BEGIN and COMMIT
}

// note takes a message of a unit in and reports whether it is the unit's last.
func (s *session) note(u *unit, m message) (ends bool) {
	if s.prepared == nil {
		s.prepared, s.portals = map[string]string{}, map[string]string{}
	}
	switch m.kind() {
	case 'P': // Parse: name, text
		name, rest := word(m.body())
		s.prepared[name], _ = word(rest)
	case 'B': // Bind: portal, name
		portal, rest := word(m.body())
		name, _ := word(rest)
		s.portals[portal] = s.prepared[name]
	case 'E': // Execute: portal
		portal, _ := word(m.body())
		s.execute(u, s.portals[portal])
	case 'Q': // Query: text
		text, _ := word(m.body())
		s.execute(u, text)
		s.end(u)
		return true
	case 'S': // Sync
		s.end(u)
		return true
	}
	return false
}

func (s *session) execute(u *unit, text string) {
	s.statements = append(s.statements, strings.Join(strings.Fields(text), " "))
	u.statements = s.statements
	switch verb, rest, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), " "); {
	case strings.HasPrefix(verb, "begin"):
		s.open = true
	case strings.HasPrefix(verb, "commit"):
		// It commits when it is executed, not at the Sync behind it.
		u.commits, u.last = true, len(u.messages)
		s.open, s.statements = false, nil
	case strings.HasPrefix(verb, "rollback") && !strings.HasPrefix(rest, "to "):
		s.open, s.statements = false, nil
	}
}

// end ends a unit. Statements outside of BEGIN and COMMIT are committed by it.
func (s *session) end(u *unit) {
	if !s.open && len(s.statements) > 0 {
		u.commits, u.last = true, len(u.messages)
		s.statements = nil
	}
}

// word reads a string that ends with a zero.
func word(b []byte) (string, []byte) {
	head, rest, _ := bytes.Cut(b, []byte{0})
	return string(head), rest
}

// passesAtOnce reports whether the server must have a message now: it is part of a login or of a COPY, or asks for what
// is there (Flush), or takes leave.
func passesAtOnce(m message) bool {
	switch m.kind() {
	case 'p', 'd', 'c', 'f', 'H', 'X':
		return true
	}
	return false
}

// invites reports whether the client must see the answer so far to go on: COPY begins.
func invites(m message) bool {
	switch m.kind() {
	case 'G', 'H', 'W':
		return true
	}
	return false
}

// refuses reports whether the server did not commit: an error, or ROLLBACK where COMMIT was asked for.
func refuses(m message) bool {
	switch m.kind() {
	case 'E':
		return true
	case 'C':
		return bytes.HasPrefix(m.body(), []byte("ROLLBACK"))
	}
	return false
}

// refusal reads the code of an error: fields with a letter each, C for the code.
func refusal(m message) (code string, ok bool) {
	if m.kind() != 'E' {
		return "", false
	}
	for rest := m.body(); len(rest) > 1 && rest[0] != 0; {
		field := rest[0]
		var text string
		text, rest = word(rest[1:])
		if field == 'C' {
			return text, true
		}
	}
	return "", true
}
