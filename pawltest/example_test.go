package pawltest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

// What docs/testing.md tests, and its tests, as they are printed there.

type Order struct {
	ID int `json:"id"`
}

func (Order) Kind() string { return "order" }

type Reminder struct {
	Order int `json:"order"`
}

func (Reminder) Kind() string { return "reminder" }

var errNotPaid = errors.New("not paid")

// register adds the handlers of the shop to an engine. The program calls it, and so do the tests.
func registerShop(e *pawl.Engine) {
	pawl.Handle(e, takeOrder)
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Reminder]) error { return nil })
}

func takeOrder(ctx context.Context, j *pawl.Job[Order]) error {
	if j.Args.ID == 13 {
		return pawl.Dead(errNotPaid)
	}
	_, err := pawl.EngineFrom(ctx).Enqueue(ctx, Reminder{Order: j.Args.ID}, pawl.In(24*time.Hour))
	return err
}

func TestOrderIsRemembered(t *testing.T) {
	pawltest.Run(t, registerShop, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Order{ID: 7})
		e.RunUntilIdle()
		r := e.RequireEnqueued(Reminder{Order: 7})
		e.RequireState(r.ID, pawl.StateWaiting)
		e.RequireNotEnqueued(Reminder{Order: 8})

		e.Advance(24 * time.Hour) // takes no time
		e.RequireState(r.ID, pawl.StateDone)
	})
}

func TestUnpaidOrder(t *testing.T) {
	j, err := pawltest.Work(t, takeOrder, Order{ID: 13})
	if !errors.Is(err, errNotPaid) || j.State != pawl.StateDead {
		t.Errorf("%s, %v", j.State, err)
	}
}

type Shop struct{ client *http.Client }

type Ship struct {
	URL string `json:"url"`
}

func (Ship) Kind() string { return "ship" }

func (s *Shop) ship(ctx context.Context, j *pawl.Job[Ship]) error {
	answer, err := s.client.Post(j.Args.URL, "text/plain", strings.NewReader(pawl.IdempotencyKey(ctx)))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

func TestShipping(t *testing.T) {
	carrier := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer carrier.Close()
	shop := &Shop{client: carrier.Client()}
	file := sqlite.File(filepath.Join(t.TempDir(), "work.db"))
	pawltest.Real(t, file, func(e *pawl.Engine) {
		pawl.Handle(e, shop.ship)
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Ship{URL: carrier.URL})
		e.RunUntilIdle()
		e.RequireState(r.ID, pawl.StateDone)
	})
}

func TestShippingOnPostgres(t *testing.T) {
	p, schema := pool(t)
	pawltest.Real(t, postgres.Pool(p, postgres.Options{Schema: schema}), registerShop, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Order{ID: 7})
		e.RunUntilIdle()
		e.RequireEnqueued(Reminder{Order: 7})
	})
}

func place(ctx context.Context, tx *pawl.Tx, id int) error {
	_, err := tx.Enqueue(ctx, Order{ID: id}, pawl.Priority(2))
	return err
}

func TestPlacing(t *testing.T) {
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		undo := errors.New("undo")
		err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			if err := place(ctx, tx, 7); err != nil {
				return err
			}
			if d := e.Inside(tx).RequireEnqueued(Order{ID: 7}); d.Priority != 2 {
				t.Errorf("priority %d", d.Priority)
			}
			return undo
		})
		if !errors.Is(err, undo) {
			t.Fatal(err)
		}
	})
}

// The code of the page is the code of this file.
func TestDocs_ThePageOnTestingRuns(t *testing.T) {
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Errorf("%d pieces of code, want at least 4", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(string(file), strings.TrimSpace(b[1])) {
			t.Errorf("this is not in example_test.go:\n%s", b[1])
		}
	}
}

func ExampleRun() {
	var t *testing.T // go test hands it to a test
	pawltest.Run(t, registerShop, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Order{ID: 7})
		e.RunUntilIdle()
		e.RequireEnqueued(Reminder{Order: 7})
		e.Advance(24 * time.Hour)
	})
}

func ExampleReal() {
	var t *testing.T // go test hands it to a test
	pawltest.Real(t, sqlite.File(filepath.Join(t.TempDir(), "work.db")), registerShop, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Order{ID: 7})
		e.RunUntilIdle()
		e.RequireState(r.ID, pawl.StateDone)
	})
}

func ExampleWork() {
	var t *testing.T // go test hands it to a test
	j, err := pawltest.Work(t, takeOrder, Order{ID: 7}, pawltest.Handling(pawl.Timeout(time.Second)))
	if err != nil || j.State != pawl.StateDone {
		t.Errorf("%s, %v", j.State, err)
	}
}
