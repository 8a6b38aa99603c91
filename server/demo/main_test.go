package demo_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/demo"
	"github.com/pawlwork/pawl/store/sqlite"
)

// envFile makes this program a process for feeds, on the store in this file.
const envFile = "PAWL_DEMO_TEST_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(envFile); file != "" {
		ctx, end := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			end()
		}()
		if err := demo.Work(ctx, opener(file), demo.QueueFeeds, slog.New(slog.DiscardHandler)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func opener(file string) demo.Opener {
	return func(_ context.Context, c pawl.Config) (*pawl.Engine, error) { return pawl.New(sqlite.File(file), c) }
}

// feeds starts this program as a process for feeds.
func feeds(file string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envFile+"="+file)
		cmd.Stderr = os.Stderr
		return cmd
	}
}
