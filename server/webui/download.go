package webui

import (
	"net/http"

	"github.com/pawlwork/pawl/server/auth"
)

// download is bytes exactly as they are stored, as a file: never shown by the browser.
type download struct {
	path string
	read func(*view) (name string, text []byte, err error)
}

func (a *app) download(d download) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := a.identify(w, r, auth.Viewer)
		if !ok {
			return
		}
		v := a.view(w, r, id, &page{name: "download", path: d.path})
		if id.Hidden {
			a.refuse(w, r, id, &fault{http.StatusForbidden, "This is hidden from you.", "Arguments, results and logs are hidden from viewers here."})
			return
		}
		name, text, err := d.read(v)
		if err != nil {
			a.refuse(w, r, id, a.faultOf(r.Context(), err))
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
		_, _ = w.Write(text) // to who has hung up
	})
}
