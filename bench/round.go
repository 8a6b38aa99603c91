package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// row is one system's result for one work: the median of its runs.
type row struct {
	Work   string `json:"work"`
	System string `json:"system"`
	measurement
	Runs   int     `json:"runs"`
	Lowest float64 `json:"lowest"`  // of the figure the work is about
	Most   float64 `json:"highest"` // of the same
}

// ratioRow is one target and what was reached.
type ratioRow struct {
	Work    string  `json:"work"`
	Against string  `json:"against"`
	Ratio   float64 `json:"ratio"`
	AtLeast float64 `json:"at_least"`
	Aim     float64 `json:"aim"`
}

// report is the whole of one call.
type report struct {
	Rows   []row      `json:"rows"`
	Ratios []ratioRow `json:"ratios"`
	// About says when, where and with what it was measured.
	About about `json:"about"`
	// LeftOut names what did not run for want of a server, Failed what broke.
	LeftOut []string `json:"left_out,omitempty"`
	Failed  []string `json:"failed,omitempty"`
}

// runner takes the works through their rounds.
type runner struct {
	servers  servers
	dir      string // of SQLite files
	rounds   int
	system   string    // the only one to run; "" means all
	says     io.Writer // progress
	out      string    // folder for what a failed run said
	profiles string    // folder for CPU profiles; "" means none
	costs    bool      // count what is asked of Postgres
}

// run measures one work: in each round every system once, each round beginning with another, so that whatever
// drifts (temperature, disk, neighbours) meets all of them alike.
func (r runner) run(ctx context.Context, w work, into *report) {
	var ready []contender
	for _, c := range w.systems {
		if r.system != "" && c.name != r.system {
			continue
		}
		if lacks := r.servers.missing(c.needs); lacks != "" {
			into.LeftOut = append(into.LeftOut, fmt.Sprintf("%s, %s: %s", w.name, c.name, lacks))
			continue
		}
		ready = append(ready, c)
	}
	measured := make(map[string][]measurement)
	for round := range r.rounds {
		for i := range ready {
			c := ready[(round+i)%len(ready)]
			if ctx.Err() != nil {
				return
			}
			m, err := r.once(ctx, w, c)
			if err != nil {
				line := fmt.Sprintf("%s, %s: %v%s", w.name, c.name, err, r.keepLog(w, c, err))
				fmt.Fprintln(r.says, line)
				into.Failed = append(into.Failed, line)
				continue
			}
			fmt.Fprintf(r.says, "%-26s %-22s round %d: %s\n", w.name, c.name, round+1, describe(w.unit, m))
			measured[c.name] = append(measured[c.name], m)
		}
	}
	medians := make(map[string]measurement)
	for _, c := range ready {
		runs := measured[c.name]
		if len(runs) == 0 {
			continue
		}
		medians[c.name] = medianOf(runs)
		lowest, most := spread(w.unit, runs)
		into.Rows = append(into.Rows, row{Work: w.name, System: c.name, measurement: medians[c.name], Runs: len(runs), Lowest: lowest, Most: most})
	}
	if r.costs {
		return // speeds behind a counter are nobody's
	}
	for _, t := range w.targets {
		if reached, ok := t.ratio(medians); ok {
			into.Ratios = append(into.Ratios, ratioRow{Work: w.name, Against: t.against, Ratio: reached, AtLeast: t.atLeast, Aim: t.aim})
		}
	}
}

// once measures in a fresh place.
func (r runner) once(ctx context.Context, w work, c contender) (m measurement, err error) {
	at, remove, err := makePlace(ctx, r.servers, c.needs, r.dir)
	if err != nil {
		return measurement{}, err
	}
	defer func() {
		if gone := remove(); err == nil && gone != nil {
			err = gone
		}
	}()
	profile := ""
	if r.profiles != "" {
		profile = filepath.Join(r.profiles, fileName(w, c)+".pprof")
	}
	return runOnce(ctx, w, c, at, profile, r.costs)
}

// keepLog writes down all that a failed run said and says where.
func (r runner) keepLog(w work, c contender, err error) string {
	var failed *failure
	if !errors.As(err, &failed) {
		return ""
	}
	path := filepath.Join(r.out, fileName(w, c)+".log")
	if err := errors.Join(os.MkdirAll(r.out, 0o755), os.WriteFile(path, []byte(failed.said), 0o644)); err != nil {
		return fmt.Sprintf(" (and it could not be written down: %v)", err)
	}
	return " (all of it is in " + path + ")"
}

func fileName(w work, c contender) string {
	return w.name + "-" + strings.NewReplacer(" ", "-", ",", "").Replace(c.name)
}

// medianOf takes each figure's median by itself. Goroutines and costs are those of the last run.
func medianOf(runs []measurement) measurement {
	pick := func(of func(measurement) *float64) *float64 {
		var values []float64
		for _, m := range runs {
			if v := of(m); v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == 0 {
			return nil
		}
		slices.Sort(values)
		middle := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		return &middle
	}
	return measurement{
		PerSecond:  pick(perSecond.of),
		P50:        pick(p50.of),
		P99:        pick(p99.of),
		RSS:        pick(rss.of),
		CPU:        pick(func(m measurement) *float64 { return m.CPU }),
		Goroutines: runs[len(runs)-1].Goroutines,
		Costs:      runs[len(runs)-1].Costs,
	}
}

// spread is the lowest and the highest of the figure the work is about.
func spread(u unit, runs []measurement) (lowest, most float64) {
	var values []float64
	for _, m := range runs {
		if v := u.of(m); v != nil {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		return 0, 0
	}
	return slices.Min(values), slices.Max(values)
}
