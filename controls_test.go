package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
)

// Each change of a setting is in the audit log with what it was and is.
func TestJ30_EntriesOfSettingsSayOldAndNew(t *testing.T) {
	e := newEngine()
	defer e.Close()
	ctx := pawl.As(t.Context(), "ann", "n")
	q := e.Queue("mail")
	for _, err := range []error{
		q.Set(ctx, pawl.QueueSettings{Total: 40, Attempts: 3}),
		q.Set(ctx, pawl.QueueSettings{Total: 80}),
		q.Set(ctx, pawl.QueueSettings{Total: 80}),
		q.Reset(ctx, "total"),
		q.Reset(ctx),
		q.Pause(ctx),
		q.Pause(ctx),
		q.Resume(ctx),
		e.SetUpkeep(ctx, "purge", time.Hour),
		e.SetUpkeep(ctx, "purge", 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	audit, err := e.Audit(ctx, pawl.AuditFilter{}, pawl.AuditPage{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range audit.Entries {
		got = append(got, strings.TrimSpace(a.Action+" "+a.Target+" "+a.Detail))
	}
	slices.Reverse(got)
	want := []string{
		"set queue mail attempts: not set → 3, total: not set → 40",
		"set queue mail total: 40 → 80",
		"set queue mail nothing changed",
		"reset queue mail total: 80 → not set",
		"reset queue mail attempts: 3 → not set",
		"pause mail",
		"pause mail nothing changed",
		"resume mail",
		`set upkeep purge every: not set → "1h0m0s"`,
		`reset upkeep purge every: "1h0m0s" → not set`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("entries are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Who pauses a queue that nobody knows has mostly mistyped it.
func TestJ30_PausingAnUnknownQueueIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	config := pawltest.Config(func(c *pawl.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	pawltest.Run(t, nil, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(Welcome{1}, pawl.Queue("waits"))
		for queue, warned := range map[string]bool{"mial": true, "waits": false, "default": false} {
			log.Reset()
			if err := e.Queue(queue).Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(log.String(), "no worker serves"); got != warned {
				t.Errorf("%s: warned %v, want %v: %s", queue, got, warned, log.String())
			}
		}
		log.Reset()
		if err := e.Queue("mial").Resume(t.Context()); err != nil || log.Len() > 0 {
			t.Errorf("resumed: %v, %s", err, log.String())
		}
	}, config)
}

func TestP10_WhatNoStoreCanKeepIsRefusedAtTheCaller(t *testing.T) {
	e := newEngine()
	defer e.Close()
	ctx := t.Context()
	far := time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	for field, opt := range map[string]pawl.EnqueueOption{"due time": pawl.At(far), "deadline": pawl.Deadline(far)} {
		if _, err := e.Enqueue(ctx, Welcome{1}, opt); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "9999") {
			t.Errorf("%s: %v", field, err)
		}
	}
	west := time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -2*60*60))
	if _, err := e.Enqueue(ctx, Welcome{1}, pawl.At(west)); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("the year 10000 in UTC, as which it is kept: %v", err)
	}
	if _, err := e.Enqueue(ctx, Welcome{1}, pawl.At(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))); err != nil {
		t.Errorf("the year 9999: %v", err)
	}
	_, err := e.Enqueue(ctx, Welcome{1}, pawl.Timeout(-1))
	if err == nil || strings.Count(err.Error(), "timeout") != 1 {
		t.Errorf("a timeout below 0 is reported once: %v", err)
	}
	for _, text := range []string{"", "x", "01931c5e1f6a70008000000000000000", "{01931c5e-1f6a-7000-8000-000000000000}"} {
		if _, err := pawl.ParseID(text); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "id "+`"`+text+`"`) || !strings.Contains(err.Error(), "36") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := e.Tx(ctx, nil); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a transaction of no function: %v", err)
	}
}

func TestJ29_ResultOfADeadJobSaysWhy(t *testing.T) {
	register := func(e *pawl.Engine) {
		pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error { return pawl.Dead(errors.New("no such user")) })
	}
	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(Welcome{1})
		e.RunUntilIdle()
		_, err := pawl.Result[int](t.Context(), e.Engine, r.ID)
		if !errors.Is(err, pawl.ErrNotDone) || !strings.Contains(err.Error(), "dead") || !strings.Contains(err.Error(), "no such user") {
			t.Errorf("%v", err)
		}
	})
}
