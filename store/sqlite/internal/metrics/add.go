package metrics

import (
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// By primary key.
const (
	markFlush = `INSERT INTO pawl_metric_flush (namespace, source, number, expires)
	VALUES (?, ?, ?, ?)
	ON CONFLICT (namespace, source) DO UPDATE
	SET number = excluded.number, expires = excluded.expires
	WHERE number < excluded.number`
	putMetric = `INSERT INTO pawl_metric (
		namespace, class, width, start, name, kind, source, flush, roll, expires, data)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (namespace, class, width, start, name, kind, source, flush) DO UPDATE
	SET roll = excluded.roll, expires = excluded.expires, data = excluded.data`
)

// Add keeps a flush, unless it or a later one of its source has been kept: the answer
// to it was lost.
func Add(in *lite.Session, f *store.MetricFlush) error {
	n, err := in.On(markFlush).Blob(f.Source[:]).Int(f.Number).Int(in.Now + store.KeepFlush.Microseconds()).Changes()
	if err != nil || n == 0 {
		return err
	}
	minute := lite.TimeOf(in.Now).Truncate(time.Minute)
	for i, r := range f.Rows {
		row := store.StoredMetric{MetricRow: r, Width: store.MetricPart, Source: f.Source, Flush: f.Number}
		if r.Start.After(minute) {
			row.Start, row.Flush = minute, store.AheadFlush(f.Number, i)
		}
		if err := put(in, &row); err != nil {
			return err
		}
	}
	return nil
}

// put writes a row in the place of the one that is there.
func put(in *lite.Session, r *store.StoredMetric) error {
	return in.On(putMetric).Int(int64(r.Class)).Int(int64(r.Width)).Int(lite.Micros(r.Start)).Text(r.Name).Text(r.Kind).
		Blob(r.Source[:]).Int(r.Flush).TimeOrNull(store.RollTime(r.Class, r.Width, r.Start)).
		Int(lite.Micros(store.MetricExpiry(r.Width, r.Start))).Blob(r.Data).Exec()
}
