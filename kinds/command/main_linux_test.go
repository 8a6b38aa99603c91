package command_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/command"
	"github.com/pawlwork/pawl/store/sqlite"
)

// workerVariable makes the test program a worker on this database, in the folder of workerRoot.
const (
	workerVariable = "PAWL_COMMAND_TEST_WORKER"
	workerRoot     = "PAWL_COMMAND_TEST_ROOT"
)

func TestMain(m *testing.M) {
	command.Guard()
	// The race detector lets a program sleep for a second before it exits; a guard is one.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	if file := os.Getenv(workerVariable); file != "" {
		if err := serve(file, os.Getenv(workerRoot)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serve works on a database until it is killed.
func serve(file, root string) error {
	e, err := pawl.New(sqlite.File(file), pawl.Config{Queues: pawl.Queues{"default": {Workers: 2}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := command.Register(e, command.Config{Root: root, Allow: programs()}); err != nil {
		return err
	}
	return e.Run(context.Background())
}
