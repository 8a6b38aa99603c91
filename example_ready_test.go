package pawl_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/pawlwork/pawl"
)

func probesOf(e *pawl.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/live", func(w http.ResponseWriter, r *http.Request) {}) // the process answers
	mux.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := e.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

// A worker's probes before it runs, while it does, and when it stops.
func ExampleEngine_Ready() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()
	probes := probesOf(e)
	probe := func(path string) int {
		answer := httptest.NewRecorder()
		probes.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		return answer.Code
	}

	pawl.Handle(e, func(_ context.Context, j *pawl.Job[Welcome]) error {
		fmt.Println("running:", probe("/ready"))
		stop()
		fmt.Println("stopping:", probe("/ready"))
		return nil
	})
	fmt.Println("before:", probe("/ready"), probe("/live"))
	if _, err := e.Enqueue(ctx, Welcome{UserID: 42}); err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// before: 503 200
	// running: 200
	// stopping: 503
}
