package breaks

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// CheckTestExists reports whether the package of a test, below root, has its function. Subtests are known only when
// they run, so it does not look for them.
func CheckTestExists(root string, t Test) error {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(t.Package), "*_test.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range parsed.Decls {
			if d, ok := declaration.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == t.Function() {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no test function %s", strings.TrimPrefix(t.Package, "./"), t.Function())
}
