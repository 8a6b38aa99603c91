package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// describe is the figure that counts, for the progress line.
func describe(u unit, m measurement) string {
	text := figure(u.of(m)) + " " + u.name
	if m.Goroutines != nil {
		text += fmt.Sprintf(", peak %s MB, goroutines %d before and %d after", figure(m.RSS), m.Goroutines.Before, m.Goroutines.After)
	}
	return text
}

// figure writes a number as people read it: all of it when large, three digits when small.
func figure(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 100:
		return thousands(fmt.Sprintf("%.0f", *v))
	default:
		return fmt.Sprintf("%.3g", *v)
	}
}

func thousands(digits string) string {
	var b strings.Builder
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// print writes the table for people.
func (r report) print(to io.Writer) {
	fmt.Fprintf(to, "\n%s, %s, %s, fdatasync p50 %s ms\n", r.About.At.Format(time.RFC3339), r.About.Go, r.About.Machine, figure(&r.About.Sync))
	if r.About.Postgres != "" {
		fmt.Fprintf(to, "Postgres %s\n", r.About.Postgres)
	}
	if r.About.Redis != "" {
		fmt.Fprintf(to, "Redis %s\n", r.About.Redis)
	}
	fmt.Fprintf(to, "%s\n\n", strings.Join(r.About.Peers, ", "))

	units := make(map[string]unit)
	for _, w := range works() {
		units[w.name] = w.unit
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "work\tsystem\tper s\tp50 ms\tp99 ms\tpeak MB\tCPU µs/op\truns\tspread")
	for _, line := range r.Rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s..%s %s\n", line.Work, line.System, figure(line.PerSecond), figure(line.P50),
			figure(line.P99), figure(line.RSS), figure(line.CPU), line.Runs, figure(&line.Lowest), figure(&line.Most), units[line.Work].name)
	}
	headed := false
	for _, line := range r.Rows {
		if line.Costs == nil {
			continue
		}
		if !headed {
			fmt.Fprintln(table, "\nwork\tsystem\tWAL bytes/op\tstatements/op\tconnections")
			headed = true
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", line.Work, line.System, figure(&line.Costs.WAL), figure(&line.Costs.Statements), figure(&line.Costs.Connections))
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "work\tagainst\tratio\tat least\taim\t")
	for _, line := range r.Ratios {
		verdict := "holds"
		switch {
		case line.Ratio < line.AtLeast:
			verdict = "MISSED"
		case line.Ratio >= line.Aim:
			verdict = "aim reached"
		}
		fmt.Fprintf(table, "%s\t%s\t%.2f\t%g\t%g\t%s\n", line.Work, line.Against, line.Ratio, line.AtLeast, line.Aim, verdict)
	}
	table.Flush()
	for _, line := range r.LeftOut {
		fmt.Fprintln(to, "left out:", line)
	}
	for _, line := range r.Failed {
		fmt.Fprintln(to, "FAILED:", line)
	}
}

// save writes the report where tools find it.
func (r report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
