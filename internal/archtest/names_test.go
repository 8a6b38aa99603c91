package archtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Names are whole words of the domain. A room called "common" says nothing of what is in it, so everything ends there.
var emptyName = regexp.MustCompile(`^(utils?|helpers?|managers?|common|base)$`)

// checkNames reads the package's name, its folders and the words of the file's name.
func checkNames(f file) []string {
	stem := strings.TrimSuffix(f.path, ".go")
	words := strings.FieldsFunc(stem, func(r rune) bool { return r == '/' || r == '_' || r == '-' || r == '.' })
	words = append(words, strings.TrimSuffix(f.syntax.Name.Name, "_test"))
	for _, word := range words {
		if emptyName.MatchString(word) {
			return []string{fmt.Sprintf("%s: %q names nothing of the domain", f.path, word)}
		}
	}
	return nil
}

func TestNames_AreWordsOfTheDomain(t *testing.T) { holds(t, checkNames) }

func TestNames_RuleCatches(t *testing.T) {
	for _, name := range []string{"util", "utils", "helper", "helpers", "manager", "common", "base"} {
		finds(t, checkNames(mustParse(t, "internal/"+name+"/x.go", "package x\n")), name)
		finds(t, checkNames(mustParse(t, "job/job_"+name+".go", "package job\n")), name)
		finds(t, checkNames(mustParse(t, "job/x.go", "package "+name+"\n")), name)
		finds(t, checkNames(mustParse(t, "job/x_test.go", "package "+name+"_test\n")), name)
	}
	finds(t, checkNames(mustParse(t, "store/sqlite/database.go", "package sqlite\n")))
}
