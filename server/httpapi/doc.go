// Package httpapi serves an engine over HTTP: jobs, queues, schedules, limits, workers
// and what happens to them, under /api/v1, described by an OpenAPI 3.1 document.
//
//	mux.Handle("/api/", httpapi.Handler(e, auth.Open("ops")))
//
// Whoever mounts it brings what package serve has besides: a check of Host where no token is needed (DNS rebinding),
// of Origin where browsers show a cookie (http.CrossOriginProtection), bounds of connections and rates.
//
// One file has the routes of one noun, with the types that go over the wire. api.go holds
// what is the same for all: who may call (auth), how large a request may be, and how
// errors become problems (problem.go, one table).
package httpapi
