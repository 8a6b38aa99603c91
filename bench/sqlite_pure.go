//go:build !cgo

package main

import "database/sql"

// openFastest opens a file with the fastest driver that builds: without cgo that is modernc.org/sqlite.
func openFastest(path string) (writer, reader *sql.DB, err error) { return openPure(path) }
