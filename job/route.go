package job

import (
	"path"
	"slices"
	"strings"
)

// DefaultQueue takes what no route matches.
const DefaultQueue = "default"

// Route sends kinds to a queue. Kind is an exact kind ("mail.welcome"), a
// prefix ("mail.*" also matches "mail.a.b") or a glob ("*.thumb-?").
type Route struct {
	Kind  string
	Queue string
}

// Check reports a pattern that cannot be read or a bad queue name. at says where
// the route stands.
func (r Route) Check(at string) error {
	if r.Kind == "" {
		return Invalid(at+".Kind", r.Kind, "must not be empty")
	}
	if _, err := path.Match(r.Kind, ""); err != nil {
		return Invalid(at+".Kind", r.Kind, "must be a kind, a prefix ending in * or a glob: "+err.Error())
	}
	return CheckName(at+".Queue", r.Queue)
}

// IsPattern reports whether a text names more than itself. No name holds a wildcard
// (CheckName), so that a name is never taken for a pattern.
func IsPattern(text string) bool { return strings.ContainsAny(text, "*?") }

// CheckPattern checks a name, or a pattern of names: a prefix ending in *, or a glob.
func CheckPattern(field, text string) error {
	if !IsPattern(text) {
		return CheckName(field, text)
	}
	if _, err := path.Match(text, ""); err != nil {
		return Invalid(field, text, "must be a name, a prefix ending in * or a glob: "+err.Error())
	}
	plain := strings.NewReplacer("*", "x", "?", "x").Replace(text)
	if CheckName(field, plain) != nil {
		return Invalid(field, text, "must be a name, a prefix ending in * or a glob, without white space or any of , > =")
	}
	return nil
}

// Matches reports whether a name is what a pattern names: exactly ("mail"), by its
// beginning ("mail.*" also matches "mail.a.b", "*" everything) or by a glob
// ("*.thumb-?"). It is the rule for the queues that a worker serves.
func Matches(pattern, name string) bool {
	if pattern == name || !IsPattern(pattern) {
		return pattern == name
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok && !strings.ContainsAny(prefix, "*?[\\") {
		return strings.HasPrefix(name, prefix)
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// MatchesAny reports whether one of the patterns names it.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Matches(p, name) })
}

// RouteKind picks the queue of a kind: an exact route first, then the longest
// prefix, then globs in their order, then DefaultQueue.
func RouteKind(routes []Route, kind string) string {
	best, bestLen := "", -1
	for _, r := range routes {
		if r.Kind == kind {
			return r.Queue
		}
		if prefix, ok := strings.CutSuffix(r.Kind, "*"); ok && !strings.ContainsAny(prefix, "*?[\\") {
			if strings.HasPrefix(kind, prefix) && len(prefix) > bestLen {
				best, bestLen = r.Queue, len(prefix)
			}
		}
	}
	if bestLen >= 0 {
		return best
	}
	for _, r := range routes {
		if ok, err := path.Match(r.Kind, kind); err == nil && ok {
			return r.Queue
		}
	}
	return DefaultQueue
}
