//go:build cgo

package main

import (
	"database/sql"

	_ "github.com/mattn/go-sqlite3" // registers "sqlite3"
)

// openFastest opens a file with the fastest driver that builds: with cgo that is mattn/go-sqlite3, which goqite and
// backlite document and test with.
func openFastest(path string) (writer, reader *sql.DB, err error) {
	return openPair("sqlite3", "file:"+path+"?_journal=WAL&_sync=FULL&_timeout=5000&_txlock=immediate", "file:"+path+"?_timeout=5000")
}
