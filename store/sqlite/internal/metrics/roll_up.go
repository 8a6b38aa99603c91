package metrics

import (
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

const (
	// dueMetrics lists what can be rolled up, by pawl_metric_roll in its order.
	dueMetrics = `SELECT class, width, start, name, kind, source, flush, data
	FROM pawl_metric INDEXED BY pawl_metric_roll
	WHERE namespace = ? AND roll IS NOT NULL AND roll <= ?
	ORDER BY roll, class, width, name, kind, start
	LIMIT ?`
	// By primary key.
	mergedMetric = `SELECT data
	FROM pawl_metric
	WHERE namespace = ? AND class = ? AND width = ? AND start = ? AND name = ? AND kind = ?
		AND source = ? AND flush = 0`
	dropMetric = `DELETE FROM pawl_metric
	WHERE namespace = ? AND class = ? AND width = ? AND start = ? AND name = ? AND kind = ?
		AND source = ? AND flush = ?`
)

// RollUp merges up to limit rows whose time has come, in one transaction: those that
// go and those that they become are there never together, and never neither.
func RollUp(in *lite.Session, limit int) (reply store.RollUpReply, err error) {
	limit = max(limit, store.LeastRollUp)
	taken, err := due(in, limit)
	if err != nil || len(taken) == 0 {
		return reply, err
	}
	all := len(taken)
	taken = taken[:store.RollUpTogether(taken, limit)]
	there, err := merged(in, store.RollUpInto(taken))
	if err != nil {
		return reply, err
	}
	for i := range taken {
		r := &taken[i]
		err := in.On(dropMetric).Int(int64(r.Class)).Int(int64(r.Width)).Int(lite.Micros(r.Start)).Text(r.Name).Text(r.Kind).
			Blob(r.Source[:]).Int(r.Flush).Exec()
		if err != nil {
			return reply, err
		}
	}
	rows := store.RollUpMetrics(taken, there)
	for i := range rows {
		if err := put(in, &rows[i]); err != nil {
			return reply, err
		}
	}
	return store.RollUpReply{Merged: len(taken), More: all >= limit || len(taken) < all}, nil
}

func due(in *lite.Session, limit int) (list []store.StoredMetric, err error) {
	q := in.On(dueMetrics).Int(in.Now).Int(int64(limit))
	for q.Step() {
		list = append(list, store.StoredMetric{
			MetricRow: store.MetricRow{
				Class: metric.Class(q.ColInt(0)), Start: q.ColTime(2), Name: q.ColText(3), Kind: q.ColText(4), Data: q.ColBlob(7),
			},
			Width: store.MetricWidth(q.ColInt(1)), Source: q.ColID(5), Flush: q.ColInt(6),
		})
	}
	return list, q.Done()
}

// merged reads the merged rows at some places.
func merged(in *lite.Session, places []store.MetricPlace) (list []store.StoredMetric, err error) {
	none := make([]byte, 16)
	for _, p := range places {
		q := in.On(mergedMetric).Int(int64(p.Class)).Int(int64(p.Width)).Int(p.Start).Text(p.Name).Text(p.Kind).Blob(none)
		if q.Step() {
			list = append(list, store.StoredMetric{
				MetricRow: store.MetricRow{Class: p.Class, Start: lite.TimeOf(p.Start), Name: p.Name, Kind: p.Kind, Data: q.ColBlob(0)}, Width: p.Width,
			})
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
