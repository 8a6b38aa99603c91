package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const mostColumns = 120

var (
	// laidOut are the stores whose SQL is written a clause per line.
	laidOut = regexp.MustCompile(`^store/(postgres|sqlite)/`)
	sqlText = regexp.MustCompile(`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\b`)
)

// checkSQLLines finds SQL with a line that is too long to read, counted as it stands in the file: a statement is
// read to see what it locks and which index serves it, clause by clause.
func checkSQLLines(f file) []string {
	if !laidOut.MatchString(f.path) || f.test() || f.syntax == nil {
		return nil
	}
	source := strings.Split(string(f.text), "\n")
	var findings []string
	for node := range ast.Preorder(f.syntax) {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || !sqlText.MatchString(literal.Value) {
			continue
		}
		first, last := f.lines.Position(literal.Pos()), f.lines.Position(literal.End())
		for n := first.Line; n <= last.Line; n++ {
			line := source[n-1]
			if n == last.Line {
				line = line[:last.Column-1] // what follows is Go
			}
			if width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); width > mostColumns {
				findings = append(findings, fmt.Sprintf("%s:%d: SQL of %d columns, want at most %d: a clause per line", f.path, n, width, mostColumns))
			}
		}
	}
	return findings
}

func TestSQL_HasAClausePerLine(t *testing.T) { holds(t, checkSQLLines) }

func TestSQL_RuleCatches(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, sql := range []string{"`SELECT\n" + long + "\n\t, " + long + long + "\nFROM job`", "`\n\nUPDATE " + long + long + "`"} {
		finds(t, checkSQLLines(mustParse(t, "store/postgres/x.go", "package x\nconst q = "+sql+"\n")), "store/postgres/x.go:4: SQL of ")
	}
	finds(t, checkSQLLines(mustParse(t, "store/postgres/internal/jobs/x.go", "package x\nvar q = \"WITH "+long+long+"\"\n")), "x.go:2: SQL of 215")
	finds(t, checkSQLLines(mustParse(t, "store/postgres/x.go", "package x\nvar q = `DELETE FROM "+strings.Repeat("\t", 25)+"`\n")), "x.go:2: SQL of 122")

	finds(t, checkSQLLines(mustParse(t, "store/postgres/x.go", "package x\nvar q = `SELECT "+long+"`\n")))
	finds(t, checkSQLLines(mustParse(t, "store/postgres/x.go", "package x\nvar q, r = `SELECT 1`, \""+long+long+"\"\n")))
	finds(t, checkSQLLines(mustParse(t, "store/postgres/x_test.go", "package x\nvar q = `SELECT "+long+long+"`\n")))
	finds(t, checkSQLLines(mustParse(t, "job/x.go", "package x\nvar q = `SELECT "+long+long+"`\n")))
}
