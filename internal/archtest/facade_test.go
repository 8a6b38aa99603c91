package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// An enum is an exported type of numbers with constants of its own. Printed as a number it says nothing, so each
// has a String.

// shelf is what the enum rule and the facade's rule need to know of one package: its files put together.
type shelf struct {
	types   map[string]*ast.TypeSpec
	methods map[string][]string // by receiver
	consts  map[string][]string // exported, by type
	values  map[string]ast.Expr // constants and variables that are set to an expression, by name
	errors  []string            // exported variables whose names begin with Err
}

// shelve puts the files of one folder together; tests and other folders are left out.
func shelve(files []file, dir string) shelf {
	s := shelf{types: map[string]*ast.TypeSpec{}, methods: map[string][]string{}, consts: map[string][]string{}, values: map[string]ast.Expr{}}
	for _, f := range files {
		if f.syntax == nil || f.test() || f.dir() != dir {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					name := receiverName(d)
					s.methods[name] = append(s.methods[name], d.Name.Name)
				}
			case *ast.GenDecl:
				s.add(d)
			}
		}
	}
	return s
}

func (s *shelf) add(d *ast.GenDecl) {
	of := "" // the type that a list of constants goes on with
	for _, spec := range d.Specs {
		switch v := spec.(type) {
		case *ast.TypeSpec:
			s.types[v.Name.Name] = v
		case *ast.ValueSpec:
			if name, ok := v.Type.(*ast.Ident); ok {
				of = name.Name
			} else if len(v.Values) > 0 {
				of = ""
			}
			for i, name := range v.Names {
				if i < len(v.Values) {
					s.values[name.Name] = v.Values[i]
				}
				switch {
				case !name.IsExported():
				case d.Tok == token.CONST && of != "":
					s.consts[of] = append(s.consts[of], name.Name)
				case d.Tok == token.VAR && strings.HasPrefix(name.Name, "Err"):
					s.errors = append(s.errors, name.Name)
				}
			}
		}
	}
}

func receiverName(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// enums are the exported types of numbers that have constants.
func (s shelf) enums() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		of, ok := s.types[name].Type.(*ast.Ident)
		if ok && ast.IsExported(name) && len(s.consts[name]) > 0 && strings.Contains(of.Name, "int") {
			names = append(names, name)
		}
	}
	return names
}

func checkEnums(files []file, dir string) []string {
	s := shelve(files, dir)
	var findings []string
	for _, name := range s.enums() {
		if !slices.Contains(s.methods[name], "String") {
			findings = append(findings, fmt.Sprintf("%s: %s has constants and no String", dir, name))
		}
	}
	return findings
}

func TestEnums_HaveAString(t *testing.T) {
	files := tree(t)
	var dirs []string
	for _, f := range files {
		if f.syntax != nil && !slices.Contains(strings.Split(f.path, "/"), "internal") && !slices.Contains(dirs, f.dir()) {
			dirs = append(dirs, f.dir())
		}
	}
	found := 0
	for _, dir := range dirs {
		found += len(shelve(files, dir).enums())
		for _, finding := range checkEnums(files, dir) {
			t.Error(finding)
		}
	}
	if found < 5 {
		t.Errorf("only %d enums found: the rule would hold for want of anything to read", found)
	}
}

func TestEnums_RuleCatches(t *testing.T) {
	bad := mustParse(t, "job/x.go", "package job\ntype Colour uint8\nconst (\n\tRed Colour = iota\n\tGreen\n)\n")
	finds(t, checkEnums([]file{bad}, "job"), "Colour has constants and no String")
	name := mustParse(t, "job/y.go", "package job\nfunc (c Colour) String() string { return \"\" }\n")
	finds(t, checkEnums([]file{bad, name}, "job"))
	id := mustParse(t, "job/x.go", "package job\ntype ID int64\nconst Max = 3\n")
	finds(t, checkEnums([]file{id}, "job"))
}

// What a user has to name is reachable from the facade: packages job and store are for those who write a store. So each
// type of theirs in an exported signature or field of the facade has an alias there, each constant of an enum that
// such a type leads to has one too, and so has each of their errors.

// notNamed are types in the facade's signatures that users hold and hand on without having to write their names.
var notNamed = map[string]string{
	"store.Store": "Engine.Store is for packages that extend a store, which import store",
	"store.Tx":    "Tx.Store and Engine.Within are for store packages",
}

func checkFacade(files []file) []string {
	facade := shelve(files, ".")
	below := map[string]shelf{"job": shelve(files, "job"), "store": shelve(files, "store")}
	aliases := map[string]bool{}
	for _, spec := range facade.types {
		if spec.Assign.IsValid() {
			aliases[selector(spec.Type)] = true
		}
	}
	values := map[string]bool{}
	for name, value := range facade.values {
		if ast.IsExported(name) {
			values[selector(value)] = true
		}
	}
	var findings []string
	missing := func(name, why string) { findings = append(findings, fmt.Sprintf("%s: %s", name, why)) }
	used := usedTypes(files)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !aliases[name] && notNamed[name] == "" {
			missing(name, used[name]+" uses it and the facade has no alias")
		}
	}
	for _, dir := range []string{"job", "store"} {
		for _, enum := range below[dir].enums() {
			if !reaches(below, slices.Collect(maps.Keys(aliases)), dir+"."+enum) {
				continue
			}
			if !aliases[dir+"."+enum] {
				missing(dir+"."+enum, "users meet it and the facade has no alias")
			}
			for _, name := range below[dir].consts[enum] {
				if !values[dir+"."+name] {
					missing(dir+"."+name, "users meet it and the facade has no constant")
				}
			}
		}
		for _, name := range below[dir].errors {
			if !values[dir+"."+name] {
				missing(dir+"."+name, "users meet it and the facade has no variable")
			}
		}
	}
	return findings
}

// usedTypes are the types of job and store in exported signatures and fields of the facade, and who uses each.
func usedTypes(files []file) map[string]string {
	used := map[string]string{}
	look := func(where string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if name := selector(n); strings.HasPrefix(name, "job.") || strings.HasPrefix(name, "store.") {
				used[name] = where
			}
			return true
		})
	}
	lookAtFields := func(where string, list *ast.FieldList) {
		for _, field := range list.List { // of a struct, or the methods of an interface
			if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
				look(where, field.Type)
			}
		}
	}
	for _, f := range files {
		if f.syntax == nil || f.test() || f.dir() != "." {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) {
					look(d.Name.Name, d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.TypeSpec)
					if !ok || !v.Name.IsExported() || v.Assign.IsValid() {
						continue
					}
					switch t := v.Type.(type) {
					case *ast.StructType:
						lookAtFields(v.Name.Name, t.Fields)
					case *ast.InterfaceType:
						lookAtFields(v.Name.Name, t.Methods)
					default:
						look(v.Name.Name, t)
					}
				}
			}
		}
	}
	return used
}

// reaches reports whether a user who holds one of the types comes to the wanted one through exported fields.
func reaches(below map[string]shelf, from []string, want string) bool {
	seen := map[string]bool{}
	for len(from) > 0 {
		name := from[len(from)-1]
		from = from[:len(from)-1]
		if name == want {
			return true
		}
		dir := strings.TrimSuffix(name, path.Ext(name))
		spec := below[dir].types[strings.TrimPrefix(path.Ext(name), ".")]
		if spec == nil || seen[name] {
			continue
		}
		seen[name] = true
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range fields.Fields.List {
			if len(field.Names) > 0 && !slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
				continue
			}
			ast.Inspect(field.Type, func(n ast.Node) bool {
				if name := selector(n); name != "" {
					from = append(from, name)
				} else if local, ok := n.(*ast.Ident); ok && local.IsExported() {
					from = append(from, dir+"."+local.Name)
				}
				return true
			})
		}
	}
	return false
}

// selector is "job.ID" for that expression, and empty for any other.
func selector(n ast.Node) string {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

func TestFacade_NamesWhatUsersNeed(t *testing.T) {
	for _, finding := range checkFacade(tree(t)) {
		t.Error(finding)
	}
}

func TestFacade_RuleCatches(t *testing.T) {
	below := mustParse(t, "job/x.go", `package job
type State uint8
const (
	Done State = iota
	Dead
)
func (State) String() string { return "" }
type Job struct { State State }
var ErrLost = 1
`)
	bare := mustParse(t, "x.go", `package pawl
func Get() (job.Job, error) { return job.Job{}, nil }
type Engine struct{ inner job.Secret }
type Option interface{ set(job.Secret) }
type Hooks struct{ Enqueue func(each func(job.Draft)) }
func (e *Engine) quiet(job.Secret) {}
`)
	finds(t, checkFacade([]file{below, bare}), "job.Draft: Hooks uses it", "job.Job: Get uses it", "job.ErrLost")
	some := mustParse(t, "x.go", `package pawl
type Record = job.Job
func Get() (Record, error) { return Record{}, nil }
var ErrLost = job.ErrLost
const StateDone = job.Done
`)
	finds(t, checkFacade([]file{below, some}), "job.State: users meet it", "job.Dead: users meet it")
	whole := mustParse(t, "y.go", "package pawl\ntype State = job.State\nconst StateDead = job.Dead\n")
	finds(t, checkFacade([]file{below, some, whole}))
}
