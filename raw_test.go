package pawl_test

import (
	"context"
	"testing"

	"github.com/pawlwork/pawl"
)

// A raw handler cannot tell what a newer version means, so it takes none: such a
// job is left for a process that knows it, and Why says so.
func TestJ14_ARawHandlerTakesNoNewerVersion(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e := newEngine()
	defer e.Close()
	newer, err := e.Enqueue(ctx, Invoice{"2026-7"}, pawl.Priority(1)) // of version 1, and claimed first if it may be
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Enqueue(ctx, pawl.RawArgs("invoice.send", []byte("raw")), pawl.Queue("mail")); err != nil {
		t.Fatal(err)
	}
	var why pawl.Why
	pawl.HandleRaw(e, "invoice.send", func(ctx context.Context, j *pawl.Job[pawl.Raw]) error {
		defer stop()
		if string(j.Args) != "raw" {
			t.Errorf("handled %s", j.Args)
		}
		why, err = e.Why(ctx, newer.ID)
		return err
	})
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if j, err := e.Get(t.Context(), newer.ID); err != nil || j.State != pawl.StateWaiting {
		t.Errorf("%s, %v", j.State, err)
	}
	if why.Code != pawl.WhyNoVersion {
		t.Errorf("why: %q", why)
	}
}
