package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Options are the settings of a store; zero fields mean the default.
type Options struct {
	// TxLimit is how long a user's transaction may hold the write lock before it
	// is rolled back [5 s]. While it does, nothing else is written.
	TxLimit time.Duration
	// BusyLimit is how long another process's lock is waited for [10 s].
	BusyLimit time.Duration
	// Synchronous weakens durability [Full].
	Synchronous Synchronous
	// IgnoreForeignKeys does not enforce the foreign keys of the user's own
	// tables in DB and Begin [they are enforced].
	IgnoreForeignKeys bool
	// TrustNetworkLocks opens a file on a network or FUSE file system all the
	// same. Two machines that write to it will damage it.
	TrustNetworkLocks bool
}

// Synchronous says what a commit waits for.
type Synchronous int

const (
	// Full waits until the commit is on disk. It is what P1 promises.
	Full Synchronous = iota
	// LoseLastOnPowerCut does not wait for the disk: a crash of the process
	// loses nothing, a crash of the machine may lose the newest commits. The
	// file stays whole.
	LoseLastOnPowerCut
)

func (s Synchronous) String() string {
	switch s {
	case Full:
		return "full"
	case LoseLastOnPowerCut:
		return "lose last on power cut"
	}
	return fmt.Sprintf("synchronous(%d)", int(s))
}

func (s Synchronous) pragma() string {
	if s == LoseLastOnPowerCut {
		return "NORMAL"
	}
	return "FULL"
}

func (o Options) withDefaults() Options {
	o.TxLimit = cmp.Or(o.TxLimit, 5*time.Second)
	o.BusyLimit = cmp.Or(o.BusyLimit, 10*time.Second)
	return o
}

func (o Options) check() error {
	var errs []error
	if o.TxLimit < 10*time.Millisecond || o.TxLimit > time.Minute {
		errs = append(errs, job.Invalid("tx limit", o.TxLimit, "must be 10ms..1m"))
	}
	if o.BusyLimit < time.Millisecond || o.BusyLimit > time.Minute {
		errs = append(errs, job.Invalid("busy limit", o.BusyLimit, "must be 1ms..1m"))
	}
	if o.Synchronous != Full && o.Synchronous != LoseLastOnPowerCut {
		errs = append(errs, job.Invalid("synchronous", int(o.Synchronous), "must be Full or LoseLastOnPowerCut"))
	}
	return errors.Join(errs...)
}
