package httpapi

import (
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// docs is a page of all routes, made of the document. It loads nothing.
func (a *api) docs(w http.ResponseWriter, r *http.Request) {
	type row struct{ Method, Path, Summary, Tag, Role string }
	var rows []row
	for path, item := range a.huma.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				role := strings.TrimSuffix(strings.TrimPrefix(op.Description, "Needs the role "), ".")
				rows = append(rows, row{op.Method, path, op.Summary, op.Tags[0], role})
			}
		}
	}
	slices.SortFunc(rows, func(x, y row) int {
		return strings.Compare(x.Tag+" "+x.Path+" "+x.Method, y.Tag+" "+y.Path+" "+y.Method)
	})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = docsPage.Execute(w, map[string]any{"Rows": rows, "Document": Prefix + "/openapi.json", "Version": a.huma.OpenAPI().Info.Version})
}

var docsPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Pawl API</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color-scheme: light dark }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8884; vertical-align: top }
code { font: 13px ui-monospace, monospace }
</style></head><body>
<h1>Pawl API <small>{{.Version}}</small></h1>
<p>The whole description, for programs: <a href="{{.Document}}">OpenAPI 3.1</a>. Errors are problems (RFC 9457) whose <code>kind</code> is stable.
Lists are paged: pass <code>next</code> of an answer as <code>after</code>.</p>
<table><tr><th>Noun</th><th>Route</th><th>What it does</th><th>Role</th></tr>
{{range .Rows}}<tr><td>{{.Tag}}</td><td><code>{{.Method}} {{.Path}}</code></td><td>{{.Summary}}</td><td>{{.Role}}</td></tr>
{{end}}</table></body></html>
`))
