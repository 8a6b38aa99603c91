// Package metrics keeps what processes measure. It owns the tables metric and
// metric_flush. What a row's bytes mean, and what rows become when they are rolled up,
// is decided by package store; this room only moves them.
package metrics

import (
	"time"

	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "metric", Key: []string{"namespace", "class", "width", "start", "name", "kind", "source", "flush"}, Users: []string{"data"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "metric_expires"},
		Roll:   table.Expiry{Column: "roll", When: "roll IS NOT NULL", Index: "metric_roll"},
	},
	{
		Name: "metric_flush", Key: []string{"namespace", "source"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "metric_flush_expires"},
	},
}

// Due asks, with the look for what is due, whether metrics can be rolled up.
var Due = jobs.Ask{
	Text: `SELECT 1
	FROM pawl.metric
	WHERE namespace = $1 AND roll IS NOT NULL AND roll <= {now}
	ORDER BY roll
	LIMIT 1`,
	Set:     func(d *store.Due, due bool) { d.RollUp = due },
	Indexes: []string{"metric_roll"},
}

// Room keeps metrics.
type Room struct {
	pg      *pg.DB
	workers *workers.Room
}

func New(db *pg.DB, workers *workers.Room) *Room { return &Room{pg: db, workers: workers} }

// rows are stored metrics as statements take them, a column each.
type rows struct {
	classes, widths []int16
	starts          []time.Time
	names, kinds    []string
	sources         [][16]byte
	flushes         []int64
	rolls           []*time.Time
	expires         []time.Time
	data            [][]byte
}

func (c *rows) add(r *store.StoredMetric) {
	c.classes, c.widths = append(c.classes, int16(r.Class)), append(c.widths, int16(r.Width))
	c.starts = append(c.starts, r.Start)
	c.names, c.kinds = append(c.names, pg.Legible(r.Name)), append(c.kinds, pg.Legible(r.Kind))
	c.sources, c.flushes = append(c.sources, r.Source), append(c.flushes, r.Flush)
	var roll *time.Time
	if at := store.RollTime(r.Class, r.Width, r.Start); !at.IsZero() {
		roll = &at
	}
	c.rolls = append(c.rolls, roll)
	c.expires = append(c.expires, store.MetricExpiry(r.Width, r.Start))
	c.data = append(c.data, r.Data)
}

// scanned reads a row of the columns class, width, start, name, kind, source, flush, data.
func scanned(scan pg.Scan) (r store.StoredMetric, err error) {
	var class, width int16
	err = scan(&class, &width, &r.Start, &r.Name, &r.Kind, (*[16]byte)(&r.Source), &r.Flush, &r.Data)
	r.Class, r.Width, r.Start = metric.Class(class), store.MetricWidth(width), r.Start.UTC()
	return r, err
}

// classes are all that this build knows.
var classes = []metric.Class{metric.OfJobs, metric.OfFailures, metric.OfWorkers, metric.OfAll}
