package job

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a draft. Those a user may change are fields of [Bounds].
const (
	MinPriority     = 1
	MaxPriority     = 9
	DefaultPriority = 5
	DefaultAttempts = 25
	MaxAttempts     = 10_000
	MaxVersion      = math.MaxInt32 // of arguments
	MaxName         = 128           // bytes of a queue, kind, tag, capability or budget name
	MaxKey          = 255           // bytes of a key
	MaxTags         = 32
	MaxDrafts       = 100_000 // drafts of one EnqueueMany
	DefaultPayload  = 1 << 20 // bytes of arguments, headers or a result
)

// Bounds are the limits that an engine may set.
type Bounds struct {
	Payload int // bytes of encoded arguments; 0 means DefaultPayload
}

// Draft is a job that is not accepted yet. Zero fields mean the default where
// one is named.
type Draft struct {
	ID           ID
	Resend       bool // the caller chose ID: look whether it was accepted before
	Kind         string
	Version      int // of the arguments, for readers of other builds
	Args         []byte
	Queue        string
	Priority     int           // 1 first .. 9 last
	At           time.Time     // due time; zero means now
	In           time.Duration // due this long after the store's now; only when At is zero
	Attempts     int           // failures allowed, counting the last one
	Timeout      time.Duration // of one attempt; 0 means the handler's
	Deadline     time.Time     // of the whole job; zero means none
	Unique       Unique
	Key          string // whose it is: to find it by, and for limits by key
	Tags         []string
	Capabilities []string
	Budget       string
	// Gate is what it waits behind, by the limits that its sender knows (GateRules).
	// Zero is none.
	Gate        int64
	HeaderBytes []byte // the headers as a store keeps them; see Headers and SetHeader
	// HandOver asks that it begins in the commit that accepts it. A store may ignore it
	// but for settling it.
	HandOver *HandOver
}

// Unique asks for at most one job per hash: while that job is live, and for
// Period after its end.
type Unique struct {
	Hash   []byte // nil means not unique
	Period time.Duration
}

// Receipt says what became of a draft.
type Receipt struct {
	// ID of the accepted job; of the job that was there first when Duplicate.
	ID ID
	// Duplicate says that nothing was added: a live or protected job holds the
	// unique key, or a job with this id was accepted before.
	Duplicate bool
}

// Check reports everything that is wrong with the draft at once, each with its
// field, value and bound. A due time may lie in the past, which means now.
func (d *Draft) Check(b Bounds) error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	limit := b.Payload
	if limit == 0 {
		limit = DefaultPayload
	}
	if d.ID == (ID{}) {
		add(Invalid("id", d.ID, "must be set"))
	}
	add(CheckName("kind", d.Kind))
	add(CheckName("queue", d.Queue))
	if d.Version < 0 || d.Version > MaxVersion {
		add(Invalid("version", d.Version, fmt.Sprintf("must be 0..%d", MaxVersion)))
	}
	if len(d.Args) > limit {
		add(Invalid("args", fmt.Sprintf("%d bytes", len(d.Args)), fmt.Sprintf("must be at most %d bytes", limit)))
	}
	if len(d.HeaderBytes) > limit {
		add(Invalid("headers", fmt.Sprintf("%d bytes", len(d.HeaderBytes)), fmt.Sprintf("must be at most %d bytes", limit)))
	}
	if d.Priority < MinPriority || d.Priority > MaxPriority {
		add(Invalid("priority", d.Priority, fmt.Sprintf("must be %d..%d", MinPriority, MaxPriority)))
	}
	if d.Attempts < 1 || d.Attempts > MaxAttempts {
		add(Invalid("attempts", d.Attempts, fmt.Sprintf("must be 1..%d", MaxAttempts)))
	}
	if d.Timeout < 0 {
		add(Invalid("timeout", d.Timeout, "must be 0 (the handler's) or more"))
	}
	if d.In < 0 {
		add(Invalid("in", d.In, "must be 0 or more"))
	}
	add(CheckTime("due time", d.At))
	add(CheckTime("deadline", d.Deadline))
	if d.Unique.Period < 0 {
		add(Invalid("unique period", d.Unique.Period, "must be 0 or more"))
	}
	if d.Unique.Period > 0 && d.Unique.Hash == nil {
		add(Invalid("unique period", d.Unique.Period, "needs a unique key"))
	}
	if d.Key != "" {
		add(CheckText("key", d.Key, 0, MaxKey))
	}
	if d.Budget != "" {
		add(CheckName("budget", d.Budget))
	}
	if len(d.Tags) > MaxTags {
		add(Invalid("tags", fmt.Sprintf("%d tags", len(d.Tags)), fmt.Sprintf("must be at most %d", MaxTags)))
	}
	for _, t := range d.Tags {
		add(CheckText("tag", t, 1, MaxName))
	}
	if len(d.Capabilities) > MaxTags {
		add(Invalid("capabilities", fmt.Sprintf("%d names", len(d.Capabilities)), fmt.Sprintf("must be at most %d", MaxTags)))
	}
	for _, c := range d.Capabilities {
		add(CheckName("capability", c))
	}
	return errors.Join(errs...)
}

// Invalid is the error for a field that is out of bounds. It wraps ErrInvalid.
func Invalid(field string, value any, bound string) error {
	v := fmt.Sprintf("%v", value)
	if s, ok := value.(string); ok && !strings.HasSuffix(s, " bytes") {
		v = fmt.Sprintf("%q", s)
	}
	if len(v) > 200 {
		v = strings.ToValidUTF8(v[:200], "") + "…"
	}
	return fmt.Errorf("%w %s %s: %s", ErrInvalid, field, v, bound)
}

// CheckTime refuses a time that not every store can keep: beyond the year 9999, or
// before the year 1, in UTC, in which they are kept. The zero time is none.
func CheckTime(field string, t time.Time) error {
	if y := t.UTC().Year(); !t.IsZero() && (y < 1 || y > 9999) {
		return Invalid(field, t, "must be in the years 1 to 9999")
	}
	return nil
}

// CheckName checks the name of a queue, kind, capability or budget: 1..128
// bytes of UTF-8 without white space, control characters, commas or wildcards,
// so that lists and patterns of names can be written down unquoted.
func CheckName(field, name string) error {
	if plainName(name) {
		return nil
	}
	if err := CheckText(field, name, 1, MaxName); err != nil {
		return err
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",*>?=", r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name[i:])
		return Invalid(field, name, fmt.Sprintf("must not contain %q (nor white space or any of , * > ? =)", r))
	}
	return nil
}

// plainName recognizes nearly every name at once: each enqueue checks several.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-' || c == ':' || c == '/') {
			return false
		}
	}
	return 0 < len(s) && len(s) <= MaxName
}

// CheckText checks a text of min..max bytes: UTF-8 without control characters.
func CheckText(field, s string, min, max int) error {
	switch {
	case len(s) < min:
		return Invalid(field, s, fmt.Sprintf("must have %d..%d bytes", min, max))
	case len(s) > max:
		return Invalid(field, s, fmt.Sprintf("has %d bytes, must have %d..%d", len(s), min, max))
	case !utf8.ValidString(s):
		return Invalid(field, s, "must be valid UTF-8")
	}
	if strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return Invalid(field, s, "must not contain control characters")
	}
	return nil
}
