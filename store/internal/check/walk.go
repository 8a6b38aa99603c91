package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Part is one piece of a database that is looked at in stretches, mostly a table.
type Part struct {
	Name string
	// Look looks at the stretch behind a key, empty in front, and adds what it finds
	// to the report. It answers its last key, nil when there is nothing behind, and how
	// many rows it had.
	Look func(ctx context.Context, c *store.Check, after []byte, r *store.CheckReport) (last []byte, rows int64, err error)
}

// Defaults of a check.
const (
	grace = time.Minute
	step  = 10_000
)

// WithDefaults fills what was not said.
func WithDefaults(c store.Check) store.Check {
	c.Grace, c.Step = cmp.Or(c.Grace, grace), cmp.Or(c.Step, step)
	return c
}

// Walk looks at the parts in turn, from where the call before it stopped, and stops
// itself behind as many rows as it may look at, or when it has found enough.
func Walk(ctx context.Context, c store.Check, parts []Part) (store.CheckReport, error) {
	var report store.CheckReport
	c = WithDefaults(c)
	at, key, err := place(c.After, parts)
	if err := errors.Join(err, bounds(&c)); err != nil {
		return report, err
	}
	for seen := int64(0); at < len(parts); {
		last, rows, err := parts[at].Look(ctx, &c, key, &report)
		if err != nil {
			return store.CheckReport{}, err
		}
		if last != nil && bytes.Compare(last, key) <= 0 {
			return store.CheckReport{}, fmt.Errorf("pawl: check of %s came back to %x from %x", parts[at].Name, last, key)
		}
		if key = last; last == nil {
			at++
		}
		seen += rows
		if at < len(parts) && (c.Rows > 0 && seen >= c.Rows || report.Found >= store.MaxFaults) {
			report.Next = parts[at].Name + "/" + hex.EncodeToString(key)
			break
		}
	}
	return report, nil
}

// mostRows is how many rows one snapshot may cover: it must be short.
const mostRows = 100_000

func bounds(c *store.Check) error {
	var errs []error
	if c.Step < 1 || c.Step > mostRows {
		errs = append(errs, job.Invalid("step", c.Step, fmt.Sprintf("must be 1..%d, 0 for %d", mostRows, step)))
	}
	if c.Rows < 0 {
		errs = append(errs, job.Invalid("rows", c.Rows, "must be 0 or more"))
	}
	if c.Grace < 0 {
		errs = append(errs, job.Invalid("grace", c.Grace, "must be 0 or more"))
	}
	return errors.Join(errs...)
}

// place reads where a call stopped.
func place(after string, parts []Part) (at int, key []byte, err error) {
	if after == "" {
		return 0, nil, nil
	}
	name, text, _ := strings.Cut(after, "/")
	at = slices.IndexFunc(parts, func(p Part) bool { return p.Name == name })
	if key, err = hex.DecodeString(text); err != nil || at < 0 {
		return 0, nil, job.Invalid("after", after, "must be Next of a report of this store")
	}
	return at, key, nil
}
