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
	Time    time.Time `json:"time"`
	Attempt int       `json:"attempt"`
	Run     int64     `json:"run"`
	Worker  WorkerID  `json:"worker,omitempty"`
	Message string    `json:"message"`
	// Fingerprint is equal for messages that differ only in numbers and
	// quoted parts, so that one fault can be counted over many jobs.
	Fingerprint string `json:"fingerprint"`
	Stack       string `json:"stack,omitempty"`
	Store       bool   `json:"store,omitempty"` // because the store did: it burned no attempt
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

// AppendFailure adds one failure and keeps the newest MaxFailures.
func AppendFailure(list []Failure, f Failure) []Failure {
	list = append(list, f)
	if over := len(list) - MaxFailures; over > 0 {
		list = append([]Failure(nil), list[over:]...)
	}
	return list
}

// EncodeFailures writes failures as a store keeps them; nil for none.
func EncodeFailures(list []Failure) []byte {
	if len(list) == 0 {
		return nil
	}
	b, err := json.Marshal(list)
	if err != nil { // a struct of strings, numbers and a time between the years 0 and 9999
		panic("job: encode failures: " + err.Error())
	}
	return b
}

// DecodeFailures reads what EncodeFailures wrote.
func DecodeFailures(b []byte) ([]Failure, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var list []Failure
	err := json.Unmarshal(b, &list)
	return list, err
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
