package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	modulePath = "github.com/pawlwork/pawl"
	program    = modulePath + "/internal/tools/walk/onejob"
)

// function is a declared function or method of ours. What a function literal does counts for the function it is written in.
type function struct {
	name  string // as the page has it: runner.Runner.claim
	does  string // the first sentence of its comment, without its name
	decl  *ast.FuncDecl
	info  *types.Info
	lines [2]int // from, to
	size  int    // statements, those inside of others counted
}

// mostShort is how many statements a function has at most that is no step: it only passes on, reads or sets something, and is
// read where it is called. internal/archtest/walk_test.go has the same.
const mostShort = 3

// step reports whether a person who follows the job has to stop and read the function.
func (f *function) step() bool { return f.size > mostShort }

// source is the code that the program is built of.
type source struct {
	functions []*function
	byFile    map[string][]*function // by import path and file name, as counters have them
	byObject  map[*types.Func]*function
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	ImportMap               map[string]string
	Module                  *struct{ Path string }
}

// readSource reads and type-checks our packages, the imported before those that import them. Others are known by their
// export data.
func readSource(root string) (*source, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,ImportMap,Module", program)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	s := &source{byFile: map[string][]*function{}, byObject: map[*types.Func]*function{}}
	files := token.NewFileSet()
	exports, checked := map[string]string{}, map[string]*types.Package{}
	others := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module == nil || p.Module.Path != modulePath {
			continue
		}
		imports := importing(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if ours := checked[path]; ours != nil {
				return ours, nil
			}
			return others.Import(path)
		})
		pkg, err := s.read(files, p, imports)
		if err != nil {
			return nil, err
		}
		checked[p.ImportPath] = pkg
	}
}

// importing is a types.Importer.
type importing func(path string) (*types.Package, error)

// Import calls f.
func (f importing) Import(path string) (*types.Package, error) { return f(path) }

// read adds the functions of one package.
func (s *source) read(files *token.FileSet, p listed, imports types.Importer) (*types.Package, error) {
	var syntax []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		syntax = append(syntax, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: imports}).Check(p.ImportPath, files, syntax, info)
	if err != nil {
		return nil, err
	}
	for i, f := range syntax {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.FuncDecl)
			if !ok || decl.Body == nil {
				continue
			}
			fn := &function{name: label(p.ImportPath) + "." + nameOf(decl), decl: decl, info: info}
			fn.does, fn.size = does(decl), statements(decl)
			fn.lines = [2]int{files.Position(decl.Pos()).Line, files.Position(decl.End()).Line}
			s.functions = append(s.functions, fn)
			key := p.ImportPath + "/" + p.GoFiles[i]
			s.byFile[key] = append(s.byFile[key], fn)
			s.byObject[info.Defs[decl.Name].(*types.Func)] = fn
		}
	}
	return pkg, nil
}

// label is how the page names a package: its place in the tree, without the folders that only say who may import it.
// internal/archtest/walk_test.go reads it.
func label(importPath string) string {
	below := strings.TrimPrefix(strings.TrimPrefix(importPath, modulePath), "/")
	if below == "" {
		return "pawl"
	}
	return strings.ReplaceAll("/"+below, "/internal/", "/")[1:]
}

// nameOf is the function's name, after that of its receiver's type if it has one.
func nameOf(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	kind := decl.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr: // a type parameter
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.Name + "." + decl.Name.Name
		default:
			return decl.Name.Name
		}
	}
}

// statements counts what a function has to say: blocks and labels only hold it, and the head of a case belongs to its switch.
func statements(decl *ast.FuncDecl) (n int) {
	for node := range ast.Preorder(decl.Body) {
		switch node.(type) {
		case *ast.BlockStmt, *ast.LabeledStmt, *ast.CaseClause, *ast.CommClause, *ast.EmptyStmt:
		case ast.Stmt:
			n++
		}
	}
	return n
}

// does is the first sentence of a function's comment without the function's name, up to a colon or semicolon, and to a comma
// where it is long.
func does(decl *ast.FuncDecl) string {
	text := strings.Join(strings.Fields(new(doc.Package).Synopsis(decl.Doc.Text())), " ")
	text = strings.TrimPrefix(text, decl.Name.Name+" ")
	if end := strings.IndexAny(text, ":;"); end > 0 {
		text = text[:end]
	}
	const short, long = 30, 80
	if end := strings.Index(text[min(len(text), short):], ", "); end >= 0 && len(text) > long {
		text = text[:short+end]
	}
	return strings.TrimSuffix(text, ".")
}
