package main

import (
	"database/sql"
	"errors"
	"net/url"

	_ "modernc.org/sqlite" // registers "sqlite"
)

// Peers on SQLite get one connection that writes, as their documentation advises (SQLite has one writer, and a
// second connection only waits for it by sleeping), and a second handle for the bench to read with.

// openPure opens a file with modernc.org/sqlite, in WAL mode, synchronous=FULL.
func openPure(path string) (writer, reader *sql.DB, err error) {
	settings := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)"}, "_txlock": {"immediate"}}
	return openPair("sqlite", "file:"+path+"?"+settings.Encode(), "file:"+path+"?_pragma=busy_timeout(5000)")
}

func openPair(driver, write, read string) (writer, reader *sql.DB, err error) {
	if writer, err = sql.Open(driver, write); err != nil {
		return nil, nil, err
	}
	writer.SetMaxOpenConns(1)
	if err := writer.Ping(); err != nil {
		return nil, nil, errors.Join(err, writer.Close())
	}
	if reader, err = sql.Open(driver, read); err != nil {
		return nil, nil, errors.Join(err, writer.Close())
	}
	return writer, reader, nil
}
