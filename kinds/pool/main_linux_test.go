package pool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/pool"
	"github.com/pawlwork/pawl/store/sqlite"
)

// roleVariable makes the test program play a part: a child, one that does not read, or a worker on fileVariable.
const (
	roleVariable = "PAWL_POOL_TEST_ROLE"
	fileVariable = "PAWL_POOL_TEST_FILE"
)

func TestMain(m *testing.M) {
	pool.Guard()
	// The race detector lets a program sleep for a second before it exits; a guard is one.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	switch os.Getenv(roleVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "child":
		playChild()
	case "ready":
		fmt.Println(`{"status":"ready"}`)
		playChild()
	case "eager":
		fmt.Println("hello")
		pause()
	case "deaf":
		pause()
	case "crash":
		fmt.Fprintln(os.Stderr, "no licence")
		os.Exit(3)
	case "worker":
		if err := serve(os.Getenv(fileVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// asked is what a test wants a child to do.
type asked struct {
	Do    string
	Say   string // on stderr
	File  string
	Fill  string
	Delay float64
}

func (asked) Kind() string { return "play" }

// playChild does as it is asked.
func playChild() {
	for lines := bufio.NewReaderSize(os.Stdin, 2<<20); ; {
		text, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var r struct {
			ID      string
			Payload asked
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			panic(err)
		}
		a := r.Payload
		if a.Say != "" {
			fmt.Fprintln(os.Stderr, a.Say)
		}
		answer := map[string]any{"id": r.ID, "status": a.Do, "error": "because", "delay": a.Delay, "result": os.Getpid()}
		suffix := ""
		switch a.Do {
		case "garbage":
			fmt.Println("Traceback (most recent call last):")
			continue
		case "mismatch":
			answer["id"], answer["status"] = "0", "ok"
		case "exit":
			os.Exit(3)
		case "half":
			fmt.Print(`{"id":`)
			os.Exit(0)
		case "long":
			fmt.Println(strings.Repeat("x", 3<<20))
			continue
		case "twice":
			answer["status"], suffix = "ok", "{}\n"
		case "hang":
			pause()
		case "fork":
			fork(a.File)
			answer["status"] = "ok"
		}
		line, err := json.Marshal(answer)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n%s", line, suffix)
	}
}

func pause() {
	for {
		_ = syscall.Pause()
	}
}

// fork starts sleepers, one in a session of its own, that hold a named pipe.
func fork(name string) {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	for _, session := range []bool{false, true} {
		cmd := exec.Command("sh", "-c", "sleep 30; echo survived >&3") // they do not stay for ever if they are not ended
		cmd.ExtraFiles = []*os.File{f}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
	}
	fmt.Fprintln(f, "ready")
	_ = f.Close()
}

// playing is a pool of this test program.
func playing(role string) pool.Config {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return pool.Config{
		Kinds: []string{"play"}, Path: path, Env: map[string]string{roleVariable: role, "GORACE": "atexit_sleep_ms=0"},
		Size: 1, Line: 2 << 20, Logger: slog.New(slog.DiscardHandler),
	}
}

// serve works on a database until it is killed.
func serve(file string) error {
	e, err := pawl.New(sqlite.File(file), pawl.Config{Queues: pawl.Queues{"default": {Workers: 2}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := pool.Register(e, playing("child")); err != nil {
		return err
	}
	return e.Run(context.Background())
}
