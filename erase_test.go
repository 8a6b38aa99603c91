package pawl_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// eraseEngine is an engine on a namespace of a file, and what it logs.
func eraseEngine(t *testing.T, path, namespace string) (*pawl.Engine, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	e, err := pawl.New(sqlite.File(path), pawl.Config{Namespace: namespace, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, &log
}

func TestJ29_EraseNamespaceRemovesAllOfOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	tenant, log := eraseEngine(t, path, "tenant")
	other, _ := eraseEngine(t, path, "")
	const jobs = store.EraseRows + 10 // more than one step
	items := make([]pawl.Item, jobs)
	for i := range items {
		items[i] = pawl.NewItem(Welcome{int64(i)})
	}
	for _, e := range []*pawl.Engine{tenant, other} {
		if _, err := e.EnqueueMany(t.Context(), items...); err != nil {
			t.Fatal(err)
		}
	}
	n, err := tenant.EraseNamespace(pawl.As(t.Context(), "ann", "they left"), "tenant")
	if err != nil || n != jobs {
		t.Errorf("%d rows, %v, want %d", n, err, jobs)
	}
	for e, want := range map[*pawl.Engine]int{tenant: 0, other: jobs} {
		if c, err := e.Count(t.Context(), pawl.Filter{}, 0); err != nil || c.Jobs != want {
			t.Errorf("%d jobs are left, %v, want %d", c.Jobs, err, want)
		}
	}
	for _, want := range []string{`msg="erasing a namespace" namespace=tenant by=ann note="they left"`, `msg="namespace is erased" namespace=tenant by=ann note="they left" rows=2010`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %s, want %s", log, want)
		}
	}
	if n, err := tenant.EraseNamespace(t.Context(), "tenant"); err != nil || n != 0 {
		t.Errorf("again: %d rows, %v", n, err)
	}
}

// Who means another namespace, or none, erases nothing.
func TestJ29_EraseNamespaceWantsItsName(t *testing.T) {
	e, log := eraseEngine(t, filepath.Join(t.TempDir(), "work.db"), "")
	if _, err := e.Enqueue(t.Context(), Welcome{1}); err != nil {
		t.Fatal(err)
	}
	for _, confirm := range []string{"", "tenant", "Default", "default "} {
		if n, err := e.EraseNamespace(t.Context(), confirm); n != 0 || !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), `"default"`) {
			t.Errorf("confirmed by %q: %d rows, %v", confirm, n, err)
		}
	}
	if c, err := e.Count(t.Context(), pawl.Filter{}, 0); err != nil || c.Jobs != 1 || log.Len() > 0 {
		t.Errorf("%+v, %v, want the job; the log is %s", c, err, log)
	}
	if n, err := e.EraseNamespace(t.Context(), "default"); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestJ29_EraseNamespaceIsRefusedWhileItIsWorkedOn(t *testing.T) {
	e, log := eraseEngine(t, filepath.Join(t.TempDir(), "work.db"), "")
	if _, err := e.Store().Register(t.Context(), store.Worker{Label: "mailer", Host: "h1", LostAfter: 1 << 40, Queues: []string{"mail"}}); err != nil {
		t.Fatal(err)
	}
	n, err := e.EraseNamespace(t.Context(), "default")
	if n != 0 || !errors.Is(err, pawl.ErrInUse) || !strings.Contains(err.Error(), `"mailer" on h1`) || log.Len() > 0 {
		t.Errorf("%d rows, %v, want that the worker is named; the log is %s", n, err, log)
	}
}
