package archtest

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// No code runs because a package was imported. The exception is a backend that registers the scheme of its
// connection strings, which is what its import is for.
func checkInit(f file) []string {
	if registers(f.dir()) && !f.test() {
		return nil
	}
	var findings []string
	for _, declaration := range f.syntax.Decls {
		if d, ok := declaration.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
			findings = append(findings, f.at(d.Pos())+": init runs behind the reader's back: call it by name")
		}
	}
	return findings
}

// registers reports whether a folder is a backend's.
func registers(dir string) bool {
	store, _ := path.Match("store/*", dir)
	return store && !strings.HasSuffix(dir, "/storetest") || dir == "stream/redis" || dir == "stream/nats"
}

func TestInit_OnlyRegistersDrivers(t *testing.T) { holds(t, checkInit) }

func TestInit_RuleCatches(t *testing.T) {
	const source = "package x\nfunc init() {}\nfunc (box) init() {}\ntype box struct{}\n"
	for _, name := range []string{"x.go", "job/x.go", "store/x.go", "store/storetest/x.go", "store/sqlite/x_test.go", "stream/x.go", "server/webui/x.go"} {
		finds(t, checkInit(mustParse(t, name, source)), name+":2: init")
	}
	for _, name := range []string{"store/sqlite/x.go", "store/postgres/x.go", "stream/redis/x.go", "stream/nats/x.go"} {
		finds(t, checkInit(mustParse(t, name, source)))
	}
}
