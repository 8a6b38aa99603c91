package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A word of docs/glossary.md names one type. Where the same idea has a type on more than one floor, the floors are here,
// with what each of them is: a second type of that name that is not listed is a second meaning, or an idea that somebody
// had before.
var floors = map[string]map[string]string{
	"job":     {".Job": "what a handler is given", "job.Job": "the job"},
	"handler": {".handler": "what Handle was given", "internal/runner.Handler": "what the runner calls", "internal/consumer.Handler": "what a subscription calls"},
	"hooks":   {".Hooks": "as a user writes them", "internal/runner.Hooks": "as the runner calls them"},
	"room": {
		"a store's": "of claims", "store/postgres/internal/hints.Room": "of hints", "store/postgres/internal/settings.Room": "of what operators set",
		"store/postgres/internal/workers.Room": "of the registry", "store/postgres/internal/jobs.Room": "of jobs", "store/postgres/internal/lists.Room": "of what people ask",
		"store/postgres/internal/intents.Room": "of intents", "store/postgres/internal/operations.Room": "of what operators do to many jobs",
		"store/postgres/internal/schedules.Room": "of schedules", "store/postgres/internal/limits.Room": "of buckets",
		"store/postgres/internal/metrics.Room": "of metrics", "store/postgres/internal/log.Room": "of events",
		"store/postgres/internal/groups.Room": "of groups",
	},
	"verdict": {"job.Verdict": "a store's answer to an end", "stream.Verdict": "what becomes of a delivery"},
	"backend": {
		"stream.Backend": "the seam", "stream/memory.Backend": "one in memory", "internal/feed.Backend": "a store's groups",
		"internal/feed/feedtest.Backend": "the same, under test",
	},
	"feed":         {"stream.Feed": "the seam", "stream/memory.feed": "of one in memory", "internal/feed.Feed": "of a store's groups"},
	"group":        {".Group": "as a user sees it", "stream/memory.group": "of a backend in memory"},
	"subscription": {".Subscription": "to events, as a user sees it", "internal/wake.Subscription": "to hints"},
	"delivery":     {"stream.Delivery": "what a feed gives", "internal/feed.delivery": "one that is open"},
	"throttle":     {"job.Throttle": "what a queue is asked for", "kinds/demo.Throttle": "a demo job that is throttled"},
	"spaces":       {"store.Spaces": "the seam", "a store's": "what implements it"},
	"meeting":      {"store/internal/meet.Meeting": "the meeting", "a store's": "one that sends statements"},
	"stuck":        {".Stuck": "as a user sees it", "internal/runner.Stuck": "a handler that ignores its context"},
	"worker":       {".Worker": "as a user sees it", "store.Worker": "the worker"},
	"offer":        {"job.Offer": "the offer", "a store's": "as its statements take it"},
	"store":        {"store.Store": "the seam", "a store's": "what implements it", "internal/member.Store": "what a member needs of it"},
	"run":          {"job.Run": "one claim of one job", "kinds/command.Run": "what a job wants run: the arguments of pawl.command"},
	"kind":         {"internal/runner.Kind": "of a job", "supervise.Kind": "of a service, in a package that stands alone"},
}

// A type of both stores is one idea in two dialects.
var dialect = regexp.MustCompile(`^store/(postgres|sqlite)(/|\.)`)

var glossaryRow = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)

// words are what the first column of the glossary's tables names.
func words(page file) (list []string) {
	for _, row := range glossaryRow.FindAllStringSubmatch(string(page.text), -1) {
		for _, word := range strings.Split(row[1], ",") {
			if word = strings.Trim(word, " `"); word != "word" && !strings.HasPrefix(word, "--") {
				list = append(list, word)
			}
		}
	}
	return list
}

// checkWords finds words that name more types than their floors have.
func checkWords(glossary []string, files []file, floors map[string]map[string]string) (findings []string) {
	types, inStore := map[string][]string{}, map[string]string{}
	for _, f := range files {
		if f.syntax == nil || f.test() || outside.MatchString(f.dir()) {
			continue
		}
		for _, d := range f.syntax.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				made := spec.(*ast.TypeSpec)
				if made.Assign.IsValid() {
					continue // the same type under the user's roof
				}
				name := made.Name.Name
				place := strings.TrimPrefix(f.dir()+"."+name, ".")
				if d := dialect.FindStringSubmatch(place); d != nil {
					place = "a store's"
					if before := inStore[d[1]+strings.ToLower(name)]; before != "" && before != f.dir() {
						place = f.dir() + "." + name // a second one in the same store
					}
					inStore[d[1]+strings.ToLower(name)] = f.dir()
				}
				if word := strings.ToLower(name); !slices.Contains(types[word], place) {
					types[word] = append(types[word], place)
				}
			}
		}
	}
	for _, word := range glossary {
		named := types[strings.ReplaceAll(word, " ", "")]
		known := floors[word]
		for _, place := range named {
			if len(named) > 1 && known[place] == "" {
				findings = append(findings, fmt.Sprintf("%q of the glossary names a second type: %s, beside %s", word, place, strings.Join(named, ", ")))
			}
		}
		for place := range known {
			if !slices.Contains(named, place) {
				findings = append(findings, fmt.Sprintf("%q: there is no type %s", word, place))
			}
		}
	}
	return findings
}

// outside are modules and folders with words of their own; the server shows the same
// things over the wire, under the same words.
var outside = regexp.MustCompile(`^(bench|examples|server|internal/(testenv|tools|breaks|need|archtest|fault))(/|$)`)

func TestU12_AWordNamesOneType(t *testing.T) {
	files := tree(t)
	i := slices.IndexFunc(files, func(f file) bool { return f.path == "docs/glossary.md" })
	if i < 0 {
		t.Fatal("there is no docs/glossary.md")
	}
	for _, finding := range checkWords(words(files[i]), files, floors) {
		t.Error(finding)
	}
}

func TestU12_RuleOfWordsCatches(t *testing.T) {
	files := []file{
		mustParse(t, "job/a.go", "package job\ntype Draft struct{}\ntype Offer struct{}\n"),
		mustParse(t, "store/x/b.go", "package x\ntype draft struct{}\ntype offer struct{}\n"),
		mustParse(t, "store/x/b_test.go", "package x\ntype Job struct{}\n"),
	}
	known := map[string]map[string]string{"offer": {"job.Offer": "the offer", "store/x.offer": "as statements take it"}, "job": {"job.Job": "the job"}}
	got := checkWords([]string{"draft", "offer", "job"}, files, known)
	want := []string{
		`"draft" of the glossary names a second type: job.Draft, beside job.Draft, store/x.draft`,
		`"draft" of the glossary names a second type: store/x.draft, beside job.Draft, store/x.draft`,
		`"job": there is no type job.Job`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
