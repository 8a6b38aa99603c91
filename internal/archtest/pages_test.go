package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a page shows is what runs. A go block of docs/howto, docs/testing.md and docs/cron.md stands line for line, apart from indentation and blank
// lines, in a Go file of the tree, which the compiler reads and mostly a test runs. A block that cannot, because it
// needs a module that we do not have, says so right before it:
//
//	<!-- not compiled: needs gorm -->
func checkSnippets(page file, sources []string) []string {
	var findings []string
	reason, block, open := "", []string(nil), false
	for i, line := range strings.Split(string(page.text), "\n") {
		switch text := strings.TrimSpace(line); {
		case !open && text == "```go":
			block, open = nil, true
		case open && text == "```":
			open = false
			code := squeeze(strings.Join(block, "\n"))
			found := slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, code) })
			switch {
			case found && reason != "":
				findings = append(findings, fmt.Sprintf("%s:%d: the block before is in the tree: drop %q", page.path, i+1, reason))
			case !found && reason == "":
				findings = append(findings, fmt.Sprintf("%s:%d: the block before is in no Go file", page.path, i+1))
			}
			reason = ""
		case open:
			block = append(block, line)
		case strings.HasPrefix(text, "<!-- not compiled: "):
			reason = text
		case text != "":
			reason = ""
		}
	}
	if open {
		findings = append(findings, page.path+": the last block is not closed")
	}
	return findings
}

// squeeze drops indentation and blank lines; each line ends with a line break, and the text begins with one, so that
// a part of a line is no line.
func squeeze(text string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

var (
	citedName = regexp.MustCompile("`((?:Test|Example)[A-Za-z0-9_]+)`")
	madeName  = regexp.MustCompile(`(?m)^func ((?:Test|Example)[A-Za-z0-9_]*)\(`)
	pageLink  = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)\s]*)?\)`)
	unlinked  = regexp.MustCompile("[^a-z0-9 _-]")
)

// headings are the places of a page that a link can name, as GitHub spells them.
func headings(page file) map[string]bool {
	places := map[string]bool{}
	for line := range strings.SplitSeq(string(page.text), "\n") {
		if text := strings.TrimLeft(line, "#"); text != line && strings.HasPrefix(text, " ") {
			text = unlinked.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
			places["#"+strings.ReplaceAll(text, " ", "-")] = true
		}
	}
	return places
}

// A test or an example that a page names as its witness exists, and so does a file or a heading that it links to.
// paths has the headings of each page, and nil for other files and folders.
func checkCited(page file, made map[string]bool, paths map[string]map[string]bool) []string {
	var findings []string
	code := false
	for i, line := range strings.Split(string(page.text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code {
			continue
		}
		for _, m := range citedName.FindAllStringSubmatch(line, -1) {
			if !made[m[1]] && m[1] != "TestConformance" {
				findings = append(findings, fmt.Sprintf("%s:%d: there is no %s", page.path, i+1, m[1]))
			}
		}
		for _, m := range pageLink.FindAllStringSubmatch(line, -1) {
			to := page.path
			if m[1] != "" {
				to = path.Join(page.dir(), m[1])
			}
			places, found := paths[to]
			if !found || m[2] != "" && !places[m[2]] {
				findings = append(findings, fmt.Sprintf("%s:%d: there is no %s%s", page.path, i+1, to, m[2]))
			}
		}
	}
	return findings
}

// shown reports whether the blocks of a page are held against the tree.
func shown(name string) bool {
	return strings.HasSuffix(name, ".md") && (path.Dir(name) == "docs/howto" || name == "docs/testing.md" || name == "docs/cron.md")
}

// written reports whether a page is written by people; the others quote what a run printed, of tests that may be gone.
func written(name string) bool {
	return (name == "README.md" || name == "CONTRIBUTING.md" || strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md")) &&
		!slices.Contains([]string{"docs/conformance.md", "docs/performance.md", "docs/soak.md"}, name)
}

func TestU12_WhatPagesShowAndNameIsInTheTree(t *testing.T) {
	var sources []string
	made, paths, pages := map[string]bool{}, map[string]map[string]bool{}, 0
	for _, f := range tree(t) {
		for at := f.dir(); at != "."; at = path.Dir(at) {
			paths[at] = nil
		}
		paths[f.path] = nil
		if strings.HasSuffix(f.path, ".md") {
			paths[f.path] = headings(f)
		}
		if f.syntax == nil {
			continue
		}
		sources = append(sources, squeeze(string(f.text)))
		for _, m := range madeName.FindAllStringSubmatch(string(f.text), -1) {
			made[m[1]] = true
		}
	}
	for _, f := range tree(t) {
		var findings []string
		if shown(f.path) {
			pages++
			findings = checkSnippets(f, sources)
		}
		if written(f.path) {
			findings = append(findings, checkCited(f, made, paths)...)
		}
		for _, finding := range findings {
			t.Error(finding)
		}
	}
	if pages < 5 {
		t.Errorf("only %d pages", pages)
	}
}

func TestU12_RulesOfPagesCatch(t *testing.T) {
	sources := []string{squeeze("package x\n\nfunc f() {\n\tg()\n\n\th()\n}\n")}
	page := func(text string) file { return mustParse(t, "docs/howto/x.md", text) }
	finds(t, checkSnippets(page("text\n```go\ng()\nh()\n```\n"), sources))
	finds(t, checkSnippets(page("- item\n  ```go\n  g()\n  ```\n```sh\nls\n```\n"), sources))
	finds(t, checkSnippets(page("```go\nh()\ng()\n```\n"), sources), "docs/howto/x.md:4: the block before is in no Go file")
	finds(t, checkSnippets(page("```go\ng(\n```\n"), sources), "in no Go file")
	finds(t, checkSnippets(page("<!-- not compiled: needs gorm -->\n\n```go\nk()\n```\n"), sources))
	finds(t, checkSnippets(page("<!-- not compiled: needs gorm -->\n```go\ng()\n```\n"), sources), "drop")
	finds(t, checkSnippets(page("<!-- not compiled: needs gorm -->\ntext\n```go\nk()\n```\n"), sources), "in no Go file")
	finds(t, checkSnippets(page("```go\ng()\n"), sources), "not closed")

	made, paths := map[string]bool{"TestP1_X": true}, map[string]map[string]bool{"docs/adr": nil}
	paths["docs/jobs.md"] = headings(mustParse(t, "docs/jobs.md", "# Jobs\n## Attempts, and `runs` that were lost\n#hash\n"))
	paths["docs/howto/x.md"] = headings(page("## Here\n"))
	finds(t, checkCited(page("`TestP1_X`, `TestP1_…` [a](../jobs.md#attempts-and-runs-that-were-lost), [b](../adr), [c](https://x.org) [d](#here)"), made, paths))
	finds(t, checkCited(page("\n`TestP2_X` and `ExampleX`"), made, paths), "docs/howto/x.md:2: there is no TestP2_X", "there is no ExampleX")
	finds(t, checkCited(page("```go\nResult[A](jobs.md)\n```\n"), made, paths))
	finds(t, checkCited(page("[a](jobs.md)"), made, paths), "there is no docs/howto/jobs.md")
	finds(t, checkCited(page("[a](../jobs.md#hash) [b](#there)"), made, paths), "there is no docs/jobs.md#hash", "there is no docs/howto/x.md#there")
}
