package pgserver_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/child"
)

// A removed server leaves no process, no file and no shared memory, also one that was killed, which could not clean up.
func TestRemove_LeavesNothing(t *testing.T) {
	for _, end := range []string{"Running", "Stopped", "Killed"} {
		t.Run(end, func(t *testing.T) {
			server := need.PostgresServer(t)
			postmaster := server.PID()
			backends, err := child.Of(postmaster)
			if err != nil || len(backends) == 0 {
				t.Fatalf("Postgres %d has children %v, %v", postmaster, backends, err)
			}
			switch end {
			case "Stopped":
				err = server.Stop()
			case "Killed":
				err = server.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := segments(t, postmaster), map[string]int{"Running": 1, "Killed": 1}[end]; got != want {
				t.Fatalf("%s server has %d pieces of shared memory, want %d", end, got, want)
			}
			if err := server.Remove(); err != nil {
				t.Fatal(err)
			}
			if n := segments(t, postmaster); n != 0 {
				t.Errorf("%d pieces of shared memory are left", n)
			}
			if _, err := os.Stat(filepath.Dir(server.Data())); !os.IsNotExist(err) {
				t.Errorf("its folder: %v", err)
			}
			for _, pid := range append(backends, postmaster) {
				if !child.Ended(pid) {
					t.Errorf("process %d lives on", pid)
				}
			}
		})
	}
}

// segments counts the System V shared memory that the process pid made.
func segments(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	const creator = 4 // key, shmid, perms, size, cpid
	n := 0
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > creator && fields[creator] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}
