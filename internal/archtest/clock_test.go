package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Time is an argument, or the store's. Domain code and store code never ask the process for it, except a backend's
// clock file, so that one place decides what "now" is and tests can move it.
func checkClock(f file) []string {
	if f.test() || !timeless(f) {
		return nil
	}
	name, ok := f.imports("time")
	if !ok {
		return nil
	}
	if name == "." {
		return []string{f.path + ": imports time with a dot, which hides who asks the time"}
	}
	var findings []string
	for node := range ast.Preorder(f.syntax) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		// Not only calls: `now: time.Now` asks the time as well, only later.
		pkg, ok := selector.X.(*ast.Ident)
		if ok && pkg.Name == name && slices.Contains([]string{"Now", "Since", "Until"}, selector.Sel.Name) {
			findings = append(findings, fmt.Sprintf("%s: time.%s outside a clock file: take the time as an argument or from the store", f.at(selector.Pos()), selector.Sel.Name))
		}
	}
	return findings
}

// timeless reports whether the rule holds for a file: it is below job, stream, flow or store, and is no clock file.
func timeless(f file) bool {
	first, _, _ := strings.Cut(f.path, "/")
	return slices.Contains([]string{"job", "stream", "flow", "store"}, first) && !clockFile(f.path)
}

// clockFile reports whether a file is the one of its backend that may ask the time.
func clockFile(name string) bool {
	for _, allowed := range []string{"store/*/clock.go", "store/*/clock.sql", "store/*/internal/*/clock.go", "stream/*/clock.go"} {
		if ok, _ := path.Match(allowed, name); ok {
			return true
		}
	}
	return false
}

// SQL that asks the database the time. On SQLite that would be a second clock beside the process's own; on Postgres
// it would miss the offset that the conformance suite sets. A date function without arguments means "now" as well.
var sqlClock = map[string]*regexp.Regexp{
	"store/sqlite/":   regexp.MustCompile(`(?i)'now'|\bcurrent_(timestamp|date|time)\b|\b(datetime|unixepoch|julianday|strftime)\s*\(`),
	"store/postgres/": regexp.MustCompile(`(?i)\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(|\b(current_(timestamp|date|time)|local(timestamp|time))\b`),
}

var sqlComment = regexp.MustCompile(`(?m)--.*$`)

// checkSQLClock reads the SQL of a store: string literals of Go files, and .sql files without their comments.
func checkSQLClock(f file) []string {
	if clockFile(f.path) || f.test() {
		return nil
	}
	for folder, asks := range sqlClock {
		if !strings.HasPrefix(f.path, folder) {
			continue
		}
		var findings []string
		report := func(where, sql string) {
			if word := asks.FindString(sqlComment.ReplaceAllString(sql, "")); word != "" {
				findings = append(findings, fmt.Sprintf("%s: SQL asks the time (%s): the clock file does that", where, word))
			}
		}
		switch {
		case f.syntax != nil:
			for node := range ast.Preorder(f.syntax) {
				if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if sql, err := strconv.Unquote(literal.Value); err == nil {
						report(f.at(literal.Pos()), sql)
					}
				}
			}
		case strings.HasSuffix(f.path, ".sql"):
			report(f.path, string(f.text))
		}
		return findings
	}
	return nil
}

func TestClock_OnlyClockFilesAskTheTime(t *testing.T) {
	holds(t, checkClock)
	for _, f := range tree(t) {
		for _, finding := range checkSQLClock(f) {
			t.Error(finding)
		}
	}
}

func TestClock_RuleCatches(t *testing.T) {
	const asks = "package x\nimport \"time\"\nvar a = time.Now()\nvar b = time.Since(a)\nvar c = time.Until(a)\nvar d = time.Now\n"
	finds(t, checkClock(mustParse(t, "job/decide.go", asks)), "job/decide.go:3: time.Now", "go:4: time.Since", "go:5: time.Until", "go:6: time.Now")
	finds(t, checkClock(mustParse(t, "store/sqlite/job_claim.go", asks)), "Now", "Since", "Until", "Now")
	finds(t, checkClock(mustParse(t, "store/clock.go", asks)), "Now", "Since", "Until", "Now")
	finds(t, checkClock(mustParse(t, "stream/redis/read.go", asks)), "Now", "Since", "Until", "Now")
	finds(t, checkClock(mustParse(t, "flow/x.go", "package x\nimport clock \"time\"\nvar a = clock.Now()\n")), "time.Now")
	finds(t, checkClock(mustParse(t, "flow/x.go", "package x\nimport . \"time\"\nvar a = Now()\n")), "with a dot")

	finds(t, checkClock(mustParse(t, "store/sqlite/clock.go", asks)))
	finds(t, checkClock(mustParse(t, "store/sqlite/internal/lite/clock.go", asks)))
	finds(t, checkClock(mustParse(t, "job/decide_test.go", asks)))
	finds(t, checkClock(mustParse(t, "supervise/every.go", asks)))
	finds(t, checkClock(mustParse(t, "job/x.go", "package x\nimport \"time\"\nconst grace = 5 * time.Second\n")))
}

func TestClock_RuleCatchesSQL(t *testing.T) {
	for _, sql := range []string{
		"select datetime('now')", "select unixepoch()", "update job set due = CURRENT_TIMESTAMP", "select strftime ('%s', x)", "select julianday('NOW')",
	} {
		finds(t, checkSQLClock(mustParse(t, "store/sqlite/x.go", "package x\nvar q = `"+sql+"`\n")), "store/sqlite/x.go:2: SQL asks the time")
		finds(t, checkSQLClock(mustParse(t, "store/sqlite/migrations/0001.sql", sql)), "0001.sql: SQL asks the time")
	}
	for _, sql := range []string{"select now()", "select clock_timestamp()", "default current_timestamp", "select localtimestamp"} {
		finds(t, checkSQLClock(mustParse(t, "store/postgres/x.go", "package x\nvar q = `"+sql+"`\n")), "SQL asks the time")
	}
	finds(t, checkSQLClock(mustParse(t, "store/postgres/clock.go", "package x\nvar q = `select now()`\n")))
	finds(t, checkSQLClock(mustParse(t, "store/postgres/x.go", "package x\nvar q = `select pawl_now()`\n")))
	finds(t, checkSQLClock(mustParse(t, "store/sqlite/x.go", "package x\nvar q = `select due -- never 'now'\nfrom job where due <= ?`\n")))
	finds(t, checkSQLClock(mustParse(t, "docs/x.sql", "select datetime('now')")))
}
