package httpapi

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Those who ask for lists wait for each other, and nobody else waits for them.
func TestU2_ListsWaitForEachOtherAndHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := pawl.New(sqlite.Memory(), pawl.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		a, handler := newAPI(e, auth.Open("ops"), Options{Logger: slog.New(slog.DiscardHandler), Version: "v7", Streams: 1})
		ask := func(method, path, body string) (int, string) {
			r := httptest.NewRequestWithContext(t.Context(), method, "/api/v1"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		for range looksAtOnce {
			a.looks <- struct{}{} // lists that go on
		}
		for path, status := range map[string]int{"/jobs/" + pawl.ID{}.String(): 404, "/workers": 200, "/settings": 200} {
			if code, said := ask("GET", path, ""); code != status {
				t.Errorf("%s: %d %s", path, code, said)
			}
		}
		if code, said := ask("POST", "/jobs", `{"kind":"k"}`); code != 201 {
			t.Errorf("%d %s", code, said)
		}
		for _, list := range []string{"/jobs", "/jobs/count", "/queues", "/counts", "/metrics/series", "/failures", "/audit"} {
			began := time.Now() // virtual
			if code, said := ask("GET", list, ""); code != 503 || !strings.Contains(said, `"busy"`) || time.Since(began) != lookWait {
				t.Errorf("%s: %d %s after %s", list, code, said, time.Since(began))
			}
		}
		answered := make(chan int, 1)
		go func() {
			code, _ := ask("GET", "/jobs", "")
			answered <- code
		}()
		synctest.Wait()
		<-a.looks // one of them is over
		if code := <-answered; code != 200 {
			t.Error(code)
		}
		if len(a.looks) != looksAtOnce-1 {
			t.Errorf("%d places are taken", len(a.looks))
		}
	})
}

// Each name is that of an operation: one that is misspelt would bound nothing.
func TestU2_WhatWaitsForAPlaceIsThere(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a, _ := newAPI(e, auth.Open("ops"), Options{Logger: slog.New(slog.DiscardHandler), Version: "v7", Streams: 1})
	found := map[string]bool{}
	for _, path := range a.huma.OpenAPI().Paths {
		if path.Get != nil {
			found[path.Get.OperationID] = true
		}
		if path.Post != nil {
			found[path.Post.OperationID] = true
		}
	}
	for name := range wide {
		if !found[name] {
			t.Errorf("there is no operation %s", name)
		}
	}
}
