package webui_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/server/webui"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Both faces in a server of one's own, which knows already who calls. One that does not know them says so with
// auth.ErrNoToken, which is answered by 401; any other error is a fault, and answered by 500.
func ExampleHandler() {
	quiet := slog.New(slog.DiscardHandler)
	e, err := pawl.New(sqlite.Memory(), pawl.Config{Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	who := auth.Func(func(r *http.Request) (auth.Identity, error) {
		name := r.Header.Get("X-User") // or the session of your server
		if name == "" {
			return auth.Identity{}, auth.ErrNoToken
		}
		return auth.Identity{Name: name, Role: auth.Operator}, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/api/", httpapi.Handler(e, who))
	mux.Handle("/ops/", http.StripPrefix("/ops", webui.Handler(e, who, webui.Options{Prefix: "/ops"})))

	for _, path := range []string{"/api/v1/queues", "/ops/queues"} {
		for _, name := range []string{"", "ann"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("X-User", name)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			fmt.Printf("%s as %q: %d\n", path, name, w.Code)
		}
	}
	// Output:
	// /api/v1/queues as "": 401
	// /api/v1/queues as "ann": 200
	// /ops/queues as "": 401
	// /ops/queues as "ann": 200
}
