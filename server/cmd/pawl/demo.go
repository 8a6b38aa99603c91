package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/demo"
	"github.com/pawlwork/pawl/server/serve"
	"github.com/pawlwork/pawl/server/telemetry"
	"github.com/pawlwork/pawl/server/webui"
	"github.com/pawlwork/pawl/store"
)

// demoCommand has the demo, and workers for it.
func (a *app) demoCommand() *cobra.Command {
	worker := &cobra.Command{
		Use: "worker QUEUE", Short: "Serve a queue of the running demo: " + strings.Join(demo.Queues(), " or "), Args: counted(1, 1), RunE: a.demoWorker,
		ValidArgs: demo.Queues(),
	}
	worker.Flags().Bool("until-eof", false, "end with the standard input, as a child of the demo does")
	_ = worker.Flags().MarkHidden("until-eof")
	cmd := group("demo", "Serve a living small company to look at, until SIGTERM or SIGINT", "", worker)
	cmd.Long = "Demo is pawl serve with a company at work: orders, mails that are retried, a cron, a flaky service, tenants, a queue nobody\n" +
		"serves, and a job that kills its process. Its store is a SQLite file in your cache folder, which is removed when the demo stops\n" +
		"and stays when it is killed: start it again, and it goes on. --dir, --store-file and PAWL_STORE name another place, which stays."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return groupRun(cmd, args)
		}
		return a.demo(cmd)
	}
	addSettings(cmd, true)
	cmd.Flags().Bool("keep", false, "keep the store when the demo stops")
	cmd.Flags().Int("orders", 20, "orders a second, 1 to 200")
	cmd.PersistentFlags().String("dir", "", "`folder` of the demo's store, which stays [one in your cache folder]")
	return cmd
}

// demoStore is where the demo's store is.
type demoStore struct {
	values
	initial string // its address where the settings name none
	own     string // the folder that goes when the demo stops, if one does
}

// demoFile is the name of the demo's own store.
const demoFile = "demo.db"

// demoSettings finds the store; nothing is made.
func (a *app) demoSettings(cmd *cobra.Command) (s demoStore, err error) {
	if s.values, err = a.resolve(cmd); err != nil {
		return s, err
	}
	dir, _ := cmd.Flags().GetString("dir")
	address, _ := s.address("")
	switch {
	case dir != "" && address != "":
		return s, usage("--dir and a store: give one of them")
	case address == "sqlite::memory:":
		return s, usage("store %q: the demo has several processes, which cannot share memory; give a file", address)
	case address != "":
		return s, nil
	case dir == "":
		cache, err := os.UserCacheDir()
		if err != nil {
			return s, usage("there is no cache folder for the demo's store (%w): give one with --dir", err)
		}
		dir = filepath.Join(cache, "pawl-demo")
		s.own = dir
	}
	s.initial = "sqlite:" + filepath.Join(dir, demoFile)
	return s, nil
}

// demo serves and lets the company live until it is asked to stop, which is a success.
func (a *app) demo(cmd *cobra.Command) error {
	s, err := a.demoSettings(cmd)
	if err != nil {
		return err
	}
	orders, _ := cmd.Flags().GetInt("orders")
	if keep, _ := cmd.Flags().GetBool("keep"); keep {
		s.own = ""
	}
	ctx, stop := a.untilSignal(cmd.Context())
	defer stop()
	if _, file := s.address(s.initial); s.initial != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return unreachable(err)
		}
	}
	t, err := a.telemetry(ctx)
	if err != nil {
		return err
	}
	defer a.flush(ctx, t)
	front, err := a.serveEngine(ctx, s.values, s.initial, t.Config(pawl.Config{
		Worker: pawl.Worker{Prefix: "server"}, Version: version(), MetricsEvery: time.Second,
	}))
	if err != nil {
		return err
	}
	company, err := demo.New(demo.Config{
		Front: front, Open: a.demoOpener(s, t), Feeds: func() *exec.Cmd { return a.feeds(s) }, Orders: orders, Logger: a.serveLogger(),
		Program: os.Args[0],
	})
	if err != nil {
		return errors.Join(usage("%w", err), front.Close())
	}
	err = a.live(ctx, s, front, company, t)
	alone := s.own != "" && othersGone(front)
	if err = errors.Join(err, front.Close()); alone {
		err = errors.Join(err, os.RemoveAll(s.own))
	}
	return err
}

// live serves, and runs the company while it does. Each ends with the other.
func (a *app) live(ctx context.Context, s demoStore, front *pawl.Engine, company *demo.Company, t *telemetry.Telemetry) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var lived chan error // nil while the company does not
	c := a.serveConfig(s.values, front, t)
	c.Name, c.Tour = "demo", tour{company}
	c.Routes = []serve.Route{
		{Pattern: "POST " + demo.FixPath, Role: auth.Operator, Handler: company.FixVAT()},
		{Pattern: "GET " + demo.TryPath, Role: auth.Viewer, Handler: company.TryList()},
	}
	c.Ready = func(url string) {
		_, file := s.address(s.initial)
		fmt.Fprintf(a.out, "pawl demo is at %s\n", url)
		if file != "" {
			fmt.Fprintf(a.out, "its store is %s\n", file)
		}
		lived = make(chan error, 1)
		go func() {
			lived <- company.Run(ctx)
			stop()
		}()
	}
	err := serve.Run(ctx, c)
	stop()
	if lived != nil {
		err = errors.Join(err, <-lived)
	}
	return err
}

// othersGone reports whether nobody else works on the store: it must not be removed under them.
func othersGone(e *pawl.Engine) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	list, err := e.Workers(ctx)
	for i := range list {
		if !list[i].Lost {
			return false
		}
	}
	return err == nil
}

// demoOpener opens engines on the demo's store, which is there.
func (a *app) demoOpener(s demoStore, t *telemetry.Telemetry) demo.Opener {
	return func(ctx context.Context, c pawl.Config) (*pawl.Engine, error) {
		c.Migrate = store.MigrateCheck
		e, _, err := a.openEngine(ctx, s.values, s.initial, t.Config(c))
		return e, err
	}
}

// feeds is a child that serves the feeds. The store goes by the environment: its address may hold a
// secret, and arguments can be read by everybody.
func (a *app) feeds(s demoStore) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, "demo", "worker", demo.QueueFeeds, "--until-eof")
	address, _ := s.address(s.initial)
	cmd.Env = append(os.Environ(), "PAWL_CONFIG=", "PAWL_STORE_FILE=", "PAWL_SERVER=", "PAWL_STORE="+address, "PAWL_NAMESPACE="+s.text(setNamespace))
	cmd.Stderr = a.err
	return cmd
}

// demoWorker serves one queue of the demo until it is asked to stop, which is a success.
func (a *app) demoWorker(cmd *cobra.Command, args []string) error {
	s, err := a.demoSettings(cmd)
	if err != nil {
		return err
	}
	if !slices.Contains(demo.Queues(), args[0]) {
		return usage("queue %s: must be one of %s", strconv.Quote(args[0]), strings.Join(demo.Queues(), ", "))
	}
	if child, _ := cmd.Flags().GetBool("until-eof"); child {
		ctx, end := context.WithCancel(cmd.Context())
		defer end()
		go func() {
			_, _ = io.Copy(io.Discard, a.in)
			end()
		}()
		return demo.Work(ctx, a.demoOpener(s, nil), args[0], slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelError})))
	}
	ctx, stop := a.untilSignal(cmd.Context())
	defer stop()
	_, file := s.address(s.initial)
	open := func(ctx context.Context, c pawl.Config) (*pawl.Engine, error) {
		e, err := a.demoOpener(s, nil)(ctx, c)
		if err == nil {
			fmt.Fprintf(a.out, "serving %s of %s\n", args[0], cmp.Or(file, "the store"))
		}
		return e, err
	}
	return demo.Work(ctx, open, args[0], a.serveLogger())
}

// tour is the company's for who looks at Mission Control.
type tour struct{ *demo.Company }

const shipOffer = "Ship 1.8.3"

// Trials are the things to try.
func (t tour) Trials(ctx context.Context) (list []webui.Trial) {
	for _, try := range t.Tries(ctx) {
		one := webui.Trial{Text: try.Title, Hint: try.Hint, Done: try.Done}
		if try.Ships != "" {
			one.Offer, one.Why = shipOffer, try.Ships
		}
		list = append(list, one)
	}
	return list
}

// Do ships the version that makes invoices succeed.
func (t tour) Do(ctx context.Context, offer string) (string, error) {
	if offer != shipOffer {
		return "", fmt.Errorf("%w offer %q: must be %q", pawl.ErrInvalid, offer, shipOffer)
	}
	shipped, err := t.Ship(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is shipped. Dead invoices can be retried now.", shipped.Version), nil
}
