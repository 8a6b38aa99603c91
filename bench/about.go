package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// about says when, where and with what a table was measured, for who compares two of them.
type about struct {
	At       time.Time `json:"at"`
	Go       string    `json:"go"`
	Machine  string    `json:"machine"`
	Postgres string    `json:"postgres,omitempty"`
	Redis    string    `json:"redis,omitempty"`
	// Sync is the median of making 4 KiB durable in the folder of the SQLite files. Where it is far below a tenth
	// of a millisecond the disk does not keep its word, or the folder is in memory, and SQLite rows mean little.
	Sync  float64  `json:"fdatasync_p50_ms"`
	Peers []string `json:"peers"`
}

func describeEnvironment(ctx context.Context, s servers, dir string) (about, error) {
	a := about{
		At:      time.Now().UTC().Truncate(time.Second),
		Go:      runtime.Version(),
		Machine: fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Peers:   peers(),
	}
	var err error
	if a.Sync, err = syncTime(dir); err != nil {
		return about{}, err
	}
	if s.postgres != "" {
		if a.Postgres, err = postgresSettings(ctx, s.postgres); err != nil {
			return about{}, fmt.Errorf("PAWL_TEST_POSTGRES: %w", err)
		}
	}
	if s.redis != "" {
		if a.Redis, err = redisVersion(ctx, s.redis); err != nil {
			return about{}, fmt.Errorf("PAWL_TEST_REDIS: %w", err)
		}
	}
	return a, nil
}

// peers lists the modules that are compared, with their versions as built.
func peers() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var found []string
	for _, module := range info.Deps {
		for _, prefix := range []string{
			"github.com/riverqueue/river", "maragu.dev/goqite", "github.com/mikestefanello/backlite", "github.com/vgarvardt/gue",
			"github.com/hibiken/asynq", "github.com/mattn/go-sqlite3", "modernc.org/sqlite", "github.com/jackc/pgx",
			"github.com/ThreeDotsLabs/watermill", "github.com/ThreeDotsLabs/watermill-sql", "github.com/ncruces/go-sqlite3",
		} {
			if module.Path == prefix || strings.HasPrefix(module.Path, prefix+"/v") {
				found = append(found, module.Path+" "+module.Version)
			}
		}
	}
	return found
}

// syncTime measures the disk that SQLite will use.
func syncTime(dir string) (milliseconds float64, err error) {
	folder, err := os.MkdirTemp(dir, "pawl-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	f, err := os.Create(filepath.Join(folder, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	page := make([]byte, 4096)
	const times = 100
	taken := make([]time.Duration, times)
	for i := range taken {
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		taken[i] = time.Since(begin)
	}
	slices.Sort(taken)
	return inMilliseconds(taken[times/2]), nil
}

func postgresSettings(ctx context.Context, server string) (string, error) {
	connection, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	var text string
	const read = `select format('%s, fsync=%s, synchronous_commit=%s, shared_buffers=%s', current_setting('server_version'),
		current_setting('fsync'), current_setting('synchronous_commit'), current_setting('shared_buffers'))`
	return text, connection.QueryRow(ctx, read).Scan(&text)
}

func redisVersion(ctx context.Context, address string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	return info["Server"]["redis_version"] + ", appendonly=yes, appendfsync=always", nil
}
