package breaks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Patch breaks one promise on purpose.
type Patch struct {
	Name   string   // the file's name without .patch
	Breaks []string // the promises and checklist lines it breaks: P2, S3
	Why    string   // what the broken code does wrong
	Test   Test     // the test that must notice
	Text   []byte   // the whole file; git apply passes over the header by itself
}

// A Test is a go test command that runs one test, or one subtest of it, of one package.
type Test struct {
	Package string   // "./supervise"
	Name    string   // "TestS3_UsedUpBudgetIsAnError", "TestStore/job_claim"
	Flags   []string // -race, -tags=x
}

// Function is the Go function that holds the test.
func (t Test) Function() string {
	function, _, _ := strings.Cut(t.Name, "/")
	return function
}

// Args are the arguments to the go command. The name is anchored, so that a longer test of the same beginning cannot
// fail in its place.
func (t Test) Args(more ...string) []string {
	elements := strings.Split(t.Name, "/")
	for i, element := range elements {
		elements[i] = "^" + regexp.QuoteMeta(element) + "$"
	}
	return t.command("-run="+strings.Join(elements, "/"), more...)
}

// command is a go test of the package with the test's own flags.
func (t Test) command(run string, more ...string) []string {
	return slices.Concat([]string{"test", "-count=1", run}, t.Flags, more, []string{t.Package})
}

func (t Test) String() string { return t.Package + " " + t.Name }

var (
	promise  = regexp.MustCompile(`^[A-Z][0-9]+$`)
	testName = regexp.MustCompile(`^Test[A-Z0-9_]\w*(/[^/\s]+)*$`)
	touched  = regexp.MustCompile(`(?m)^(?:\+\+\+|---) (?:[ab]/)?(\S+)`)
)

// Parse reads a patch. All its faults are reported at once.
func Parse(name string, text []byte) (Patch, error) {
	p := Patch{Name: strings.TrimSuffix(filepath.Base(name), ".patch"), Text: text}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: "+format, append([]any{p.Name}, args...)...))
	}
	var why, test []string
	rest := string(text)
	for strings.HasPrefix(rest, "#") {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		key, value, _ := strings.Cut(strings.TrimLeft(line, "# "), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "breaks":
			for part := range strings.SplitSeq(value, ",") {
				p.Breaks = append(p.Breaks, strings.TrimSpace(part))
			}
		case "why":
			why = append(why, value)
		case "test":
			test = append(test, value)
		default:
			fault("header line %q is none of breaks, why, test", line)
		}
	}
	p.Why = strings.Join(why, " ")

	if len(p.Breaks) == 0 {
		fault("no line `# breaks:`")
	}
	for _, b := range p.Breaks {
		if !promise.MatchString(b) {
			fault("breaks %q, which is no promise: a letter and a number, such as P2 or S3", b)
		}
	}
	if p.Why == "" {
		fault("no line `# why:` that says what the broken code does wrong")
	}
	if len(test) != 1 {
		fault("%d lines `# test:`, want 1", len(test))
	} else if t, err := parseTest(test[0]); err != nil {
		fault("%w", err)
	} else {
		p.Test = t
	}
	files := touched.FindAllStringSubmatch(rest, -1)
	if len(files) == 0 {
		fault("no diff below the header")
	}
	for _, file := range files {
		if strings.HasSuffix(file[1], "_test.go") {
			fault("touches %s: a patch breaks the code, not its test", file[1])
			break
		}
	}
	return p, errors.Join(faults...)
}

// parseTest reads "go test ./supervise -run TestName". It is not a shell line: only what this package understands is
// let through, so that what runs is what was checked.
func parseTest(line string) (Test, error) {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "go" || words[1] != "test" {
		return Test{}, fmt.Errorf("test %q does not begin with go test", line)
	}
	var t Test
	var faults []error
	for i := 2; i < len(words); i++ {
		word := words[i]
		flag, value, joined := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "./"):
			if t.Package != "" || strings.HasSuffix(word, "...") {
				faults = append(faults, fmt.Errorf("test %q: name exactly one package", line))
			}
			t.Package = word
		case flag == "-race":
			t.Flags = append(t.Flags, word)
		case flag == "-run" || flag == "-tags":
			if !joined {
				if i++; i == len(words) {
					faults = append(faults, fmt.Errorf("test %q: %s has no value", line, flag))
					continue
				}
				value = words[i]
			}
			value = strings.Trim(value, `'"`)
			if flag == "-tags" {
				t.Flags = append(t.Flags, "-tags="+value)
				continue
			}
			t.Name = strings.TrimSuffix(strings.TrimPrefix(value, "^"), "$")
		default:
			faults = append(faults, fmt.Errorf("test %q: %q is none of a package below ./, -run, -race, -tags", line, word))
		}
	}
	if t.Package == "" {
		faults = append(faults, fmt.Errorf("test %q: no package, such as ./supervise", line))
	}
	if !testName.MatchString(t.Name) {
		faults = append(faults, fmt.Errorf("test %q: -run %q is not the name of one test", line, t.Name))
	}
	return t, errors.Join(faults...)
}

// Load reads every patch of a folder, in the order of their names.
func Load(dir string) ([]Patch, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var patches []Patch
	var faults []error
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		p, err := Parse(name, text)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		patches = append(patches, p)
	}
	return patches, errors.Join(faults...)
}
