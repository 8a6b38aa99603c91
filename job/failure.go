package job

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"strings"
	"time"
	"unicode"
)

// Bounds of what is kept about failures.
const (
	MaxFailures = 32      // per job; the oldest go first
	maxMessage  = 4 << 10 // bytes
	maxStack    = 8 << 10 // bytes
)

// Failure is one attempt that did not succeed.
type Failure struct {
	Time    time.Time `json:"time,omitzero"` // the store's; zero where it cannot be read
	Attempt int       `json:"attempt,omitempty"`
	Run     int64     `json:"run,omitempty"`
	Worker  WorkerID  `json:"worker,omitempty"`
	Message string    `json:"message"`
	// Fingerprint is equal for messages that differ only in numbers and
	// quoted parts, so that one fault can be counted over many jobs.
	Fingerprint string `json:"fingerprint,omitempty"`
	Stack       string `json:"stack,omitempty"`
	Store       bool   `json:"store,omitempty"` // because the store did: it burned no attempt
	// Unreadable says that this build cannot read what is stored here: it is
	// damaged, or of another build. Message says why.
	Unreadable bool `json:"unreadable,omitempty"`
}

// NewFailure describes an error within bounds. The store adds the time.
func NewFailure(attempt int, run int64, message, stack string) Failure {
	return Failure{
		Attempt:     attempt,
		Run:         run,
		Message:     clip(message, maxMessage),
		Fingerprint: Fingerprint(message),
		Stack:       clip(stack, maxStack),
	}
}

// Body is the failure without its time, as [End] carries it to a store, which
// keeps it as it is.
func (f Failure) Body() []byte {
	f.Time = time.Time{}
	b, err := json.Marshal(f)
	if err != nil { // a struct of strings and numbers
		panic("job: encode a failure: " + err.Error())
	}
	return b
}

// readFailure reads what Body wrote. What cannot be read is a failure too.
func readFailure(at time.Time, body []byte) Failure {
	var f Failure
	if err := json.Unmarshal(body, &f); err != nil {
		return unreadable(at, err.Error())
	}
	f.Time = at
	return f
}

func unreadable(at time.Time, why string) Failure {
	return Failure{Time: at, Message: "cannot be read: " + why, Unreadable: true}
}

// Fingerprint hashes a message with its digits and quoted parts left out.
func Fingerprint(message string) string {
	h := fnv.New64a()
	var quote rune
	var b strings.Builder
	for _, r := range message {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '`':
			quote = r
		case unicode.IsDigit(r):
		default:
			b.WriteRune(r)
		}
	}
	h.Write([]byte(b.String()))
	return hex.EncodeToString(h.Sum(nil))
}

func clip(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "") + "…"
}
