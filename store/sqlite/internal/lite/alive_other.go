//go:build !linux

package lite

import (
	"log/slog"

	"github.com/pawlwork/pawl/job"
)

// Alive offers no proof on this system.
type Alive struct{}

func OpenAlive(string, *slog.Logger) *Alive { return nil }

func (*Alive) Take(int64, job.WorkerID) string         { return "" }
func (*Alive) Free(int64, job.WorkerID)                {}
func (*Alive) IsFree(int64, job.WorkerID, string) bool { return false }
func (*Alive) Close() error                            { return nil }
