package job

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
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
	By                // who ran it; empty where its worker was lost
	Started time.Time `json:"started,omitzero"` // its run, by the store's clock
	Message string    `json:"message"`
	// Fingerprint is equal for messages that differ only in numbers, ids and
	// quoted parts, so that one fault can be counted over many jobs.
	Fingerprint string `json:"fingerprint,omitempty"`
	Stack       string `json:"stack,omitempty"`
	Store       bool   `json:"store,omitempty"` // because the store did: it burned no attempt
	// Unreadable says that this build cannot read what is stored here: it is
	// damaged, or of another build. Message says why.
	Unreadable bool `json:"unreadable,omitempty"`
}

// By is who ran a job: the label of its process, and the version of its build as
// the process was told.
type By struct {
	Label   string `json:"label,omitempty"`
	Version string `json:"version,omitempty"`
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

// Fingerprint hashes a message without what differs from one case to the next:
// numbers, words in hex (ids, UUIDs, pointers, digests), and quoted parts of
// every kind.
func Fingerprint(message string) string {
	h := fnv.New64a()
	h.Write([]byte(Template(message)))
	return hex.EncodeToString(h.Sum(nil))
}

// quotes are the marks that open and close a quoted part.
var quotes = map[rune]rune{'"': '"', '`': '`', '\'': '\'', '«': '»', '“': '”', '„': '“', '‘': '’', '‹': '›'}

// Template is what a fingerprint is made of: the message with a mark for each
// part that was left out.
func Template(message string) string {
	var b strings.Builder
	rest := message
	for rest != "" {
		r, size := utf8.DecodeRuneInString(rest)
		if n := quoted(message, rest); n > 0 {
			b.WriteString("“”")
			rest = rest[n:]
			continue
		}
		if !wordly(r) {
			b.WriteRune(r)
			rest = rest[size:]
			continue
		}
		n := strings.IndexFunc(rest, func(r rune) bool { return !wordly(r) && r != '-' })
		if n < 0 {
			n = len(rest)
		}
		n = len(strings.TrimRight(rest[:n], "-"))
		b.WriteString(plainWord(rest[:n]))
		rest = rest[n:]
	}
	return b.String()
}

// quoted is how long the quoted part is with which rest begins; 0 where it begins
// with none. A quote within a word is an apostrophe, and one that nobody closes is
// no quote.
func quoted(message, rest string) int {
	open, size := utf8.DecodeRuneInString(rest)
	closing, ok := quotes[open]
	if !ok {
		return 0
	}
	if before, _ := utf8.DecodeLastRuneInString(message[:len(message)-len(rest)]); wordly(before) {
		return 0
	}
	end := strings.IndexRune(rest[size:], closing)
	if end < 0 {
		return 0
	}
	return size + end + utf8.RuneLen(closing)
}

func wordly(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// plainWord leaves out of a word, which may be several with hyphens between, what
// is a number or in hex. A UUID is one number, however many parts it has.
func plainWord(word string) string {
	if whole := strings.ReplaceAll(word, "-", ""); len(whole) >= longHex && withoutNumbers(whole) == "#" {
		return "#"
	}
	parts := strings.Split(word, "-")
	for i, part := range parts {
		parts[i] = withoutNumbers(part)
	}
	return strings.Join(parts, "-")
}

// longHex is too long for a word that happens to be made of the letters of hex.
const longHex = 16

// withoutNumbers leaves out digits, and the whole word where it is in hex: with a
// digit among its letters, or too long for a word.
func withoutNumbers(word string) string {
	digits := strings.IndexFunc(word, unicode.IsDigit) >= 0
	number := strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "0X")
	inHex := number != "" && strings.IndexFunc(number, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }) < 0
	if inHex && (digits || len(number) >= longHex) {
		return "#"
	}
	if !digits {
		return word
	}
	var b strings.Builder
	last := rune(0)
	for _, r := range word {
		if unicode.IsDigit(r) {
			r = '#'
		}
		if r != '#' || last != '#' {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

func clip(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "") + "…"
}
