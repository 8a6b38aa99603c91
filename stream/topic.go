package stream

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlwork/pawl/job"
)

// MaxTopic is how many bytes the name of a topic may have.
const MaxTopic = 255

// CheckTopic checks the name of a topic: parts with dots between them, 1 to 255 bytes of
// UTF-8 in all, without control characters, white space or the wildcards of patterns.
func CheckTopic(field, topic string) error {
	if plainTopic(topic) {
		return nil
	}
	if err := checkParts(field, topic); err != nil {
		return err
	}
	if i := strings.IndexAny(topic, "*>"); i >= 0 {
		return job.Invalid(field, topic, fmt.Sprintf("must not contain %q: only patterns have wildcards", topic[i]))
	}
	return nil
}

// plainTopic recognizes nearly every topic at once: each publish checks one.
func plainTopic(s string) bool {
	dot := true // before what comes next
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == ':' || c == '/':
			dot = false
		case c == '.' && !dot:
			dot = true
		default:
			return false
		}
	}
	return !dot && len(s) <= MaxTopic
}

// checkParts checks what topics and patterns have in common.
func checkParts(field, s string) error {
	if err := job.CheckText(field, s, 1, MaxTopic); err != nil {
		return err
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return job.Invalid(field, s, fmt.Sprintf("must not contain %q (nor white space or commas)", r))
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return job.Invalid(field, s, "must have something before and behind each dot")
		}
	}
	return nil
}

// TopicPattern matches topics: "orders.placed" is that topic, a * stands for one part
// ("orders.*", "*.placed"), and a > at the end for one or more ("orders.>", ">"). The zero
// TopicPattern matches all.
type TopicPattern struct {
	text   string
	parts  []string // before a >, or all
	prefix string   // what all topics that match begin with
	rest   bool     // > at the end
	wild   bool
}

// ParsePattern reads a pattern. The empty one is ">".
func ParsePattern(field, s string) (TopicPattern, error) {
	if s == "" || s == ">" {
		return TopicPattern{text: ">", rest: true, wild: true}, nil
	}
	if err := checkParts(field, s); err != nil {
		return TopicPattern{}, err
	}
	p := TopicPattern{text: s, parts: strings.Split(s, ".")}
	for i, part := range p.parts {
		switch {
		case part == ">" && i == len(p.parts)-1:
			p.rest, p.wild = true, true
		case part == "*":
			p.wild = true
		case strings.Contains(part, "*"):
			return TopicPattern{}, job.Invalid(field, s, "must have * as a whole part, such as in orders.*")
		case strings.Contains(part, ">"):
			return TopicPattern{}, job.Invalid(field, s, "must have > as its last part alone, such as in orders.>")
		}
	}
	switch i := strings.IndexAny(s, "*>"); {
	case i < 0:
		p.prefix = s
	default:
		p.prefix = s[:i]
	}
	if p.rest {
		p.parts = p.parts[:len(p.parts)-1]
	}
	return p, nil
}

// Topic is the one topic that matches, if there is just one.
func (p TopicPattern) Topic() (topic string, one bool) { return p.text, !p.wild && p.text != "" }

// Prefix is what every topic begins with that matches.
func (p TopicPattern) Prefix() string { return p.prefix }

// Match reports whether a topic matches.
func (p TopicPattern) Match(topic string) bool {
	if p.text == "" {
		return true
	}
	if !p.wild {
		return topic == p.text
	}
	if !strings.HasPrefix(topic, p.prefix) {
		return false
	}
	for _, want := range p.parts {
		if topic == "" {
			return false
		}
		var part string
		part, topic, _ = strings.Cut(topic, ".")
		if want != "*" && want != part {
			return false
		}
	}
	return (topic != "") == p.rest
}

func (p TopicPattern) String() string {
	if p.text == "" {
		return ">"
	}
	return p.text
}

// CompareSpecific puts the more specific of two patterns first. Their parts are compared from
// the left, and the first that differs decides: a name comes before *, and * before >. So, of
// those that match orders.placed:
//
//	orders.placed   orders.*   orders.>   *.placed   *.*   >
//
// Of two different ones that match the same topic, one is always more specific.
func (p TopicPattern) CompareSpecific(q TopicPattern) int {
	a, b := p.ranked(), q.ranked()
	for i := range min(len(a), len(b)) {
		if n := rank(a[i]) - rank(b[i]); n != 0 {
			return n
		}
	}
	if n := len(b) - len(a); n != 0 {
		return n
	}
	return strings.Compare(p.String(), q.String())
}

func (p TopicPattern) ranked() []string {
	if !p.rest {
		return p.parts
	}
	return append(p.parts[:len(p.parts):len(p.parts)], ">")
}

func rank(part string) int {
	switch part {
	case "*":
		return 1
	case ">":
		return 2
	}
	return 0
}
