package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// LogHolders is a log whose readers wait for transactions that have appended and are still
// open. A log with one writer has none.
type LogHolders interface {
	// LogHolders says whose transactions hold the head back, first the one that it waits for,
	// MaxLogHolders at most. There are none when all that was appended can be read.
	LogHolders(ctx context.Context) ([]LogHolder, error)
}

// MaxLogHolders bounds how many are named: there may be as many as the server has sessions.
const MaxLogHolders = 20

// LogHolder is an open transaction that has appended events. What the server does not tell is
// zero: it names the sessions of other roles only to those who may read all statistics.
type LogHolder struct {
	PID         int
	Application string
	User        string
	State       string
	// Prepared: it waits for its COMMIT PREPARED, in no session; Name is the one that this needs.
	Prepared bool
	Name     string
	Began    time.Time
	Query    time.Time
	// Age is how old the transaction is, by the server's clock.
	Age time.Duration
}

// Who names the transaction, without its age: "the transaction of pid 123 (shop, user ann, idle
// in transaction)".
func (h *LogHolder) Who() string { return h.named(nil) }

// String is Who with its age.
func (h *LogHolder) String() string {
	if h.Age < time.Second {
		return h.Who()
	}
	return h.named([]string{h.Age.Round(time.Second).String()})
}

func (h *LogHolder) named(more []string) string {
	name := fmt.Sprintf("the transaction of pid %d", h.PID)
	if h.Prepared {
		name = "a prepared transaction"
		if h.Name != "" {
			name = fmt.Sprintf("the prepared transaction %q", h.Name)
		}
	}
	var about []string
	if h.Application != "" {
		about = append(about, h.Application)
	}
	if h.User != "" {
		about = append(about, "user "+h.User)
	}
	if h.State != "" {
		about = append(about, h.State)
	}
	if about = append(about, more...); len(about) == 0 {
		return name
	}
	return name + " (" + strings.Join(about, ", ") + ")"
}
