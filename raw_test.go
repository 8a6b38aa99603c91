package pawl_test

import (
	"context"
	"errors"
	"strings"
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

// A raw handler's result is kept byte for byte, and within the bound of a payload.
func TestJ28_ARawHandlerKeepsItsResult(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e := newEngine()
	defer e.Close()
	pawl.HandleRawResult(e, "none", nil)
	if err := e.Run(ctx); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("without a function: %v", err)
	}
	e = newEngine()
	defer e.Close()
	pawl.HandleRawResult(e, "twice", func(_ context.Context, j *pawl.Job[pawl.Raw]) (pawl.Raw, error) {
		if len(j.Args) == 0 {
			return nil, nil
		}
		return append(j.Args, j.Args...), nil
	})
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for payload, want := range map[string]string{"\x00\xff": "\x00\xff\x00\xff", "": "", strings.Repeat("x", 600<<10): ""} {
		r, err := e.Enqueue(ctx, pawl.RawArgs("twice", []byte(payload)), pawl.Attempts(1))
		if err != nil {
			t.Fatal(err)
		}
		j, err := e.Wait(ctx, r.ID)
		if err != nil || string(j.Result) != want || (j.State == pawl.StateDone) != (len(payload) < 100) {
			t.Errorf("%.10q: %s, %.10q, %v", payload, j.State, j.Result, err)
		}
		if payload == "" && j.Result != nil {
			t.Errorf("nil keeps %q", j.Result)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
