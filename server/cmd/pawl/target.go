package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store"
	_ "github.com/pawlwork/pawl/store/postgres" // for its scheme
	_ "github.com/pawlwork/pawl/store/sqlite"   // for its scheme
)

// target is what a command asks: a server, or a store.
func (v values) target() (name string, err error) {
	best := value{setting: setting{name: setServer}, text: defaultServer}
	var rival string
	for _, name := range []string{setServer, setStore, setStoreFile} {
		switch v := v[name]; {
		case v.text == "":
		case v.rank > best.rank || best.source == "":
			best, rival = v, ""
		case v.rank == best.rank:
			rival = v.source
		}
	}
	if rival != "" {
		return "", usage("%s and %s: give one of server, store and store file", best.source, rival)
	}
	return best.name, nil
}

// address is the connection string of the store, and its file if it is one.
func (v values) address(initial string) (address, file string) {
	address = v.text(setStore)
	if f := v[setStoreFile]; f.text != "" && (address == "" || f.rank > v[setStore].rank) {
		address = "sqlite:" + f.text
	}
	address = cmp.Or(address, initial)
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok && path != ":memory:" {
		file = strings.TrimPrefix(path, "//")
	}
	return address, file
}

// connect opens what the command asks, once.
func (a *app) connect(cmd *cobra.Command) (*client, error) {
	if a.api != nil {
		return a.api, nil
	}
	if a.open == nil {
		a.open = func(ctx context.Context) (*client, error) { return a.reach(ctx, cmd) }
	}
	c, err := a.open(cmd.Context())
	if err != nil {
		return nil, err
	}
	c.note = a.note
	a.api = c
	return c, nil
}

func (a *app) reach(ctx context.Context, cmd *cobra.Command) (*client, error) {
	v, err := a.resolve(cmd)
	if err != nil {
		return nil, err
	}
	timeout, err := time.ParseDuration(v.text(setTimeout)) // which is checked
	if err != nil {
		return nil, err
	}
	target, err := v.target()
	if err != nil {
		return nil, err
	}
	if target != setServer {
		return a.openStore(ctx, v, timeout)
	}
	base, err := checkServer(cmp.Or(v.text(setServer), defaultServer))
	if err != nil {
		return nil, err
	}
	token, err := v.readToken()
	if err != nil {
		return nil, err
	}
	return &client{base: base, where: base, token: token, timeout: timeout, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // nor take the token along
	}}, nil
}

// openStore serves a store inside this process. Its schema is looked at and left alone.
func (a *app) openStore(ctx context.Context, v values, timeout time.Duration) (*client, error) {
	e, where, err := a.openEngine(ctx, v, "", pawl.Config{Migrate: store.MigrateCheck, Logger: a.logger()})
	if err != nil {
		return nil, err
	}
	handler := httpapi.Handler(e, auth.Open(cmp.Or(v.text(setAs), userName())), httpapi.Options{Logger: a.logger(), Version: version()})
	return &client{
		base: "http://127.0.0.1", where: where, timeout: timeout,
		http: &http.Client{Transport: local{handler}}, closing: e.Close,
	}, nil
}

// openEngine opens the store of the settings. A SQLite file that is not there is made only
// where migrating is allowed.
func (a *app) openEngine(ctx context.Context, v values, initial string, config pawl.Config) (e *pawl.Engine, where string, err error) {
	address, file := v.address(initial)
	where = "the store"
	if file != "" {
		where = file
		if f, err := os.Open(file); err == nil {
			_ = f.Close() // it can be read: SQLite says the rest
		} else if !errors.Is(err, os.ErrNotExist) || config.Migrate != store.MigrateAuto {
			return nil, where, unreachable(err)
		}
	}
	config.Namespace, config.Owner = v.text(setNamespace), cmp.Or(config.Owner, "pawl")
	e, err = pawl.Open(ctx, address, config)
	switch {
	case err == nil:
		return e, where, nil
	case errors.Is(err, pawl.ErrInvalid) || strings.Contains(err.Error(), "store address") || strings.Contains(err.Error(), "store scheme"):
		return nil, where, usage("%w", err)
	case errors.Is(err, pawl.ErrSchemaOlder):
		err = fmt.Errorf("%w; nothing was changed: `pawl migrate up` brings it up to date", err)
	}
	return nil, where, unreachable(err)
}

// logger is for what the engine has to say to the person at the terminal.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// userName is who calls, for the audit log.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "pawl"
}
