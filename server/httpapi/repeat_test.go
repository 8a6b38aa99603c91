package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

const idempotency = "Idempotency-Key"

// again is another server of the same engine: it remembers nothing of the first.
func (s *served) again() *served {
	s.t.Helper()
	server := httptest.NewServer(httpapi.Handler(s.e, auth.Open("ann")))
	s.t.Cleanup(server.Close)
	return &served{s.t, s.e, server.URL}
}

func TestU2_TokensAreTakenOnceByAKey(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	const acquire = "/api/v1/limits/github/acquire"
	s.call("PATCH", "/api/v1/limits/github/settings", `{"per_second":0.001,"burst":3}`, 200, nil)
	var x httpapi.Acquired
	for range 5 {
		if s.call("POST", acquire, `{"tokens":2}`, 200, &x, idempotency, "call-1"); x.Tokens != 2 {
			t.Errorf("%+v", x)
		}
	}
	s.refused("POST", acquire, `{"tokens":1}`, 422, "key-reused", "call-1", idempotency, "call-1")
	s.call("POST", acquire, `{"tokens":1}`, 200, &x, idempotency, "call-2") // which is left
	s.refused("POST", acquire, `{"tokens":1}`, 429, "rate-limited", "", idempotency, "call-3")
	s.refused("POST", acquire, `{"tokens":1}`, 429, "rate-limited", "", idempotency, "call-3") // nothing was done
}

func TestU2_RepetitionsAtOnceAreOne(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	s.call("PATCH", "/api/v1/limits/github/settings", `{"per_second":0.001,"burst":1}`, 200, nil)
	var wait sync.WaitGroup
	replayed := make(chan string, 20)
	for range cap(replayed) {
		wait.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/v1/limits/github/acquire", strings.NewReader(`{}`))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header = http.Header{"Content-Type": {"application/json"}, idempotency: {"one"}}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			answer.Body.Close()
			if answer.StatusCode != 200 {
				t.Error(answer.Status)
			}
			replayed <- answer.Header.Get("Idempotent-Replayed")
		})
	}
	wait.Wait()
	close(replayed)
	firsts := 0
	for r := range replayed {
		if r == "" {
			firsts++
		}
	}
	if firsts != 1 {
		t.Errorf("%d took tokens", firsts)
	}
}

func TestU2_ATriggerWithAKeyEnqueuesOnce(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	for _, name := range []string{"plain", "other"} {
		s.call("POST", "/api/v1/schedules", `{"name":"`+name+`","cron":"0 3 * * *","kind":"k"}`, 201, nil)
	}
	var first, second, third, other httpapi.Receipt
	s.call("POST", "/api/v1/schedules/plain/trigger", "", 201, &first, idempotency, "release-7")
	s.call("POST", "/api/v1/schedules/plain/trigger", "", 201, &second, idempotency, "release-7")
	s.again().call("POST", "/api/v1/schedules/plain/trigger", "", 201, &third, idempotency, "release-7") // by the store
	if first.Duplicate || second.ID != first.ID || !second.Duplicate || third.ID != first.ID || !third.Duplicate {
		t.Errorf("%+v, %+v, %+v", first, second, third)
	}
	s.again().call("POST", "/api/v1/schedules/other/trigger", "", 201, &other, idempotency, "release-7")
	if other.Duplicate || other.ID == first.ID {
		t.Errorf("another schedule: %+v", other)
	}
	s.refused("POST", "/api/v1/schedules/other/trigger", "", 422, "key-reused", "release-7", idempotency, "release-7")
	var fresh httpapi.Receipt
	if s.call("POST", "/api/v1/schedules/plain/trigger", "", 201, &fresh, idempotency, "release-8"); fresh.Duplicate {
		t.Errorf("another key: %+v", fresh)
	}
}

func TestU2_AnOperationWithAKeyIsBegunOnce(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	const cancel = `{"verb":"cancel","filter":{"kind":"mail.*"},"pace":5}`
	var first, second, third, other httpapi.Operation
	s.call("POST", "/api/v1/operations", cancel, 200, &first, idempotency, "cleanup")
	s.call("POST", "/api/v1/operations", cancel, 200, &second, idempotency, "cleanup")
	later := s.again()
	later.call("POST", "/api/v1/operations", cancel, 200, &third, idempotency, "cleanup") // by the store
	if first.ID == "" || second.ID != first.ID || third.ID != first.ID {
		t.Errorf("%s, %s, %s", first.ID, second.ID, third.ID)
	}
	const another = `{"verb":"cancel","filter":{"kind":"x.*"},"pace":5}`
	s.refused("POST", "/api/v1/operations", another, 422, "key-reused", "cleanup", idempotency, "cleanup")
	s.again().refused("POST", "/api/v1/operations", another, 422, "key-reused", "cleanup", idempotency, "cleanup")
	if s.call("POST", "/api/v1/operations", another, 200, &other, idempotency, "another"); other.ID == first.ID {
		t.Error("another key is the same operation")
	}
	var list httpapi.OperationList
	if s.call("GET", "/api/v1/operations", "", 200, &list); len(list.Operations) != 2 {
		t.Errorf("%d operations", len(list.Operations))
	}
}

func TestU2_AJobWithAKeyIsEnqueuedOnceAfterARestartToo(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	var first, second httpapi.Receipt
	s.call("POST", "/api/v1/jobs", `{"kind":"k","args":{"a":1}}`, 201, &first, idempotency, "order-7")
	s.again().call("POST", "/api/v1/jobs", `{"kind":"k", "args": {"a": 1}}`, 201, &second, idempotency, "order-7")
	if second.ID != first.ID || !second.Duplicate {
		t.Errorf("%+v, %+v", first, second)
	}
	const other = `{"kind":"k","args":{"a":2}}`
	s.refused("POST", "/api/v1/jobs", other, 422, "key-reused", "order-7", idempotency, "order-7")
	s.again().refused("POST", "/api/v1/jobs", other, 422, "key-reused", "order-7", idempotency, "order-7")
}

func TestU2_EveryWriteTakesAKey(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	const create = `{"name":"nightly","cron":"0 3 * * *","kind":"k"}`
	s.call("POST", "/api/v1/schedules", create, 201, nil, idempotency, "new")
	s.call("POST", "/api/v1/schedules", create, 201, nil, idempotency, "new") // or: it is there already
	s.refused("POST", "/api/v1/schedules", create, 422, "invalid", "already")
	var first, second httpapi.Registered
	const worker = `{"queues":["mail"],"kinds":["k"]}`
	s.call("POST", "/api/v1/workers", worker, 201, &first, idempotency, "boot-1")
	if s.call("POST", "/api/v1/workers", worker, 201, &second, idempotency, "boot-1"); first.Worker != second.Worker {
		t.Errorf("%+v, %+v", first, second)
	}
	s.call("POST", "/api/v1/queues/mail/pause", "", 200, nil, idempotency, "p")
	s.call("DELETE", "/api/v1/schedules/nightly", "", 204, nil, idempotency, "gone")
	s.call("DELETE", "/api/v1/schedules/nightly", "", 204, nil, idempotency, "gone")
	s.refused("DELETE", "/api/v1/schedules/nightly", "", 404, "not-found", "nightly")

	s.refused("POST", "/api/v1/workers/1/claim", `{"limit":1}`, 422, "invalid", idempotency, idempotency, "x")
	s.refused("POST", "/api/v1/queues/mail/pause", "", 422, "invalid", "200", idempotency, strings.Repeat("x", 201))
	s.call("GET", "/api/v1/queues/mail", "", 200, nil, idempotency, "p") // reads take no notice
}

// Whoever uses somebody else's key gets an answer of their own.
func TestU5_AKeyIsItsCallersOwn(t *testing.T) {
	s := serve(t, auth.Func(func(r *http.Request) (auth.Identity, error) {
		return auth.Identity{Name: r.Header.Get("Name"), Role: auth.Operator, Hidden: r.Header.Get("Hidden") != ""}, nil
	}))
	const create = `{"name":"nightly","cron":"0 3 * * *","kind":"k","args":{"secret":7}}`
	var mine, others httpapi.Receipt
	s.call("POST", "/api/v1/schedules", create, 201, nil, idempotency, "a", "Name", "ann")
	s.refused("POST", "/api/v1/schedules", create, 422, "invalid", "already", idempotency, "a", "Name", "ann", "Hidden", "1")
	s.call("POST", "/api/v1/jobs", `{"kind":"k"}`, 201, &mine, idempotency, "a:b", "Name", "ann")
	s.call("POST", "/api/v1/jobs", `{"kind":"k"}`, 201, &others, idempotency, "b", "Name", "ann:a")
	if mine.ID == others.ID || others.Duplicate {
		t.Errorf("%+v, %+v", mine, others)
	}
}
