package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/demo"
	"github.com/pawlwork/pawl/server/serve"
	"github.com/pawlwork/pawl/server/telemetry"
	"github.com/pawlwork/pawl/store"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve an engine and its API, on SQLite in " + defaultFile + " by default", Args: counted(0, 0), RunE: a.serve,
		Long: "Serve opens a store, works on its queues and serves the API until SIGTERM or SIGINT; a second signal ends it at once.\n" +
			"It knows the kinds pawl.demo.*; others are worked on by your own programs. A new store is made; an older schema is left alone without --migrate.",
	}
	addSettings(cmd, true)
	return cmd
}

// serveLogger is for who runs the server.
func (a *app) serveLogger() *slog.Logger { return slog.New(slog.NewTextHandler(a.err, nil)) }

// hosts are names, with commas between them.
func hosts(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// serve runs until it is asked to stop, which is a success.
func (a *app) serve(cmd *cobra.Command, _ []string) error {
	v, err := a.resolveServe(cmd)
	if err != nil {
		return err
	}
	ctx, stop := a.untilSignal(cmd.Context())
	defer stop()
	t, err := a.telemetry(ctx)
	if err != nil {
		return err
	}
	defer a.flush(ctx, t)
	e, err := a.serveEngine(ctx, v, "sqlite:"+defaultFile, t.Config(pawl.Config{}))
	if err != nil {
		return err
	}
	c := a.serveConfig(v, e, t)
	c.Ready = func(url string) { fmt.Fprintf(a.out, "pawl serves %s\n", url) }
	return errors.Join(serve.Run(ctx, c), e.Close())
}

// resolveServe is resolve for a server, whose own faults are told with those of its settings, before a store is opened or made.
func (a *app) resolveServe(cmd *cobra.Command) (values, error) {
	v, err := a.resolve(cmd)
	if err := errors.Join(err, a.serveConfig(v, nil, nil).Check()); err != nil {
		return nil, usage("%w", err)
	}
	return v, nil
}

// telemetry is what the environment asks for.
func (a *app) telemetry(ctx context.Context) (*telemetry.Telemetry, error) {
	t, err := telemetry.FromEnvironment(ctx, telemetry.Options{Version: version(), Logger: a.serveLogger(), Console: a.out})
	if err != nil {
		return nil, usage("%w", err)
	}
	return t, nil
}

// serveConfig is what the settings say of a server.
func (a *app) serveConfig(v values, e *pawl.Engine, t *telemetry.Telemetry) serve.Config {
	return serve.Config{
		Telemetry: t,
		Engine:    e, Run: v.on(setWork), Listen: v.text(setListen), TokenFile: v.text(setTokens), TLSCert: v.text(setTLSCert), TLSKey: v.text(setTLSKey),
		HidePayloads: v.on(setHide), Pprof: v.on(setPprof), Logger: a.serveLogger(), Version: version(), Hosts: hosts(v.text(setHosts)),
		Settings: v.shown(),
	}
}

// flush sends what is left of traces and metrics. That it could not is no failure of the
// server.
func (a *app) flush(ctx context.Context, t *telemetry.Telemetry) {
	if err := t.Shutdown(context.WithoutCancel(ctx)); err != nil {
		a.serveLogger().Warn("the last of traces and metrics may be lost", "error", err)
	}
}

// untilSignal ends with the first signal; the second ends the process.
func (a *app) untilSignal(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	gone := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-gone:
				return
			case s := <-signals:
				if n > 0 {
					fmt.Fprintln(a.err, "pawl: ended by a second signal")
					os.Exit(exitFailed)
				}
				fmt.Fprintf(a.err, "pawl: %v: stopping; a second signal ends it at once\n", s)
				cancel()
			}
		}
	}()
	return inner, func() { signal.Stop(signals); close(gone); cancel() }
}

// serveEngine opens the engine, on the initial address where the settings name no store.
func (a *app) serveEngine(ctx context.Context, v values, initial string, c pawl.Config) (*pawl.Engine, error) {
	grace, badGrace := time.ParseDuration(v.text(setGrace)) // both are checked
	queues, badQueues := readQueues(v.text(setQueues))
	if err := errors.Join(badGrace, badQueues); err != nil {
		return nil, err
	}
	c.Migrate, c.Queues, c.Grace, c.Logger = store.MigrateCheck, queues, grace, a.serveLogger()
	address, file := v.address(initial)
	if v.on(setMigrate) || address == "sqlite::memory:" || file != "" && isNew(file) {
		c.Migrate = store.MigrateAuto
	}
	e, _, err := a.openEngine(ctx, v, initial, c)
	if err != nil {
		return nil, err
	}
	demo.Register(e)
	return e, nil
}

// isNew reports whether there is no file, or an empty one.
func isNew(file string) bool {
	info, err := os.Stat(file)
	return errors.Is(err, os.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// readQueues reads names with their workers: mail=40,default.
func readQueues(text string) (pawl.Queues, error) {
	queues := pawl.Queues{}
	for part := range strings.SplitSeq(text, ",") {
		name, workers, given := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); name == "" && !given {
			continue
		}
		n := 10
		if given {
			var err error
			if n, err = strconv.Atoi(strings.TrimSpace(workers)); err != nil {
				return nil, errors.New("must be names, or names with workers: mail=40,default")
			}
		}
		queues[name] = pawl.QueueConfig{Workers: n}
	}
	return queues, nil
}
