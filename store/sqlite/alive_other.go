//go:build !linux

package sqlite

import (
	"log/slog"

	"github.com/pawlwork/pawl/job"
)

// aliveFile offers no proof on this system.
type aliveFile struct{}

func openAlive(string, *slog.Logger) *aliveFile { return nil }

func (*aliveFile) take(int64, job.WorkerID) string         { return "" }
func (*aliveFile) free(int64, job.WorkerID)                {}
func (*aliveFile) isFree(int64, job.WorkerID, string) bool { return false }
func (*aliveFile) close() error                            { return nil }
