package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/store"
)

// place is where one run lives. Nothing in it is shared with another run.
type place struct {
	Dir      string // empty folder; SQLite files go here
	Postgres string // URL of an empty database, if the contender needs one
	Redis    string // host:port, if the contender needs it
}

// file names the SQLite database of the run.
func (p place) file() string { return filepath.Join(p.Dir, "bench.db") }

// servers are the addresses the environment gives; an empty one is missing.
type servers struct{ postgres, redis string }

func findServers() servers {
	return servers{postgres: os.Getenv("PAWL_TEST_POSTGRES"), redis: os.Getenv("PAWL_TEST_REDIS")}
}

// missing names what a contender needs and the environment lacks; "" means nothing.
func (s servers) missing(n needs) string {
	var lacks []string
	if n.postgres && s.postgres == "" {
		lacks = append(lacks, "PAWL_TEST_POSTGRES is not set")
	}
	if n.redis && s.redis == "" {
		lacks = append(lacks, "PAWL_TEST_REDIS is not set")
	}
	if n.store != "" {
		if _, err := store.Parse(n.store + "://127.0.0.1/"); err != nil {
			lacks = append(lacks, err.Error())
		}
	}
	return strings.Join(lacks, ", ")
}

// makePlace makes a fresh place and the function that removes it. A run gets a Postgres database of its own, not
// only a schema: bloat and statistics of one run must not be the next one's. Redis is emptied by its own system.
func makePlace(ctx context.Context, s servers, n needs, dir string) (place, func() error, error) {
	at := place{}
	var err error
	if at.Dir, err = os.MkdirTemp(dir, "pawl-bench-"); err != nil {
		return place{}, nil, err
	}
	remove := func() error { return os.RemoveAll(at.Dir) }
	if n.redis {
		at.Redis = s.redis
	}
	if n.postgres {
		name := "bench_" + strings.ToLower(rand.Text())
		if at.Postgres, err = createDatabase(ctx, s.postgres, name); err != nil {
			return place{}, nil, errors.Join(err, remove())
		}
		removeDir := remove
		remove = func() error {
			return errors.Join(execute(context.WithoutCancel(ctx), s.postgres, "drop database "+name+" with (force)"), removeDir())
		}
	}
	return at, remove, nil
}

func createDatabase(ctx context.Context, server, name string) (string, error) {
	address, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("PAWL_TEST_POSTGRES: %w", err)
	}
	if err := execute(ctx, server, "create database "+name); err != nil {
		return "", err
	}
	address.Path = "/" + name
	return address.String(), nil
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, server, statement string) error {
	connection, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, statement)
	return errors.Join(err, connection.Close(ctx))
}
