package pawl

import (
	"context"
	"database/sql"
)

// Query runs the user's own SQL. Close the rows before the next call.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (Rows, error) {
	return t.tx.Query(ctx, query, args...)
}

// ErrNoRows: QueryRow found none. It is that of database/sql, on every store.
var ErrNoRows = sql.ErrNoRows

// Row is the first row of an answer, or why there is none.
type Row struct {
	rows Rows
	err  error
}

// QueryRow runs a query that answers one row; Scan reads it. An error of the
// query is Scan's. Call Scan before the next call of the transaction.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) *Row {
	rows, err := t.tx.Query(ctx, query, args...)
	return &Row{rows: rows, err: err}
}

// Scan reads the row into dest and ends the query; ErrNoRows means that it
// succeeded and answered none. Further rows are dropped.
func (r *Row) Scan(dest ...any) (err error) {
	if r.err != nil {
		return r.err
	}
	defer func() {
		// Some statements fail only as they end.
		if end := r.rows.Close(); end != nil && (err == nil || err == ErrNoRows) {
			err = end
		}
	}()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNoRows
	}
	return r.rows.Scan(dest...)
}
