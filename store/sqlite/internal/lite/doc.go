// Package lite is SQLite as the store uses it: connections and their prepared
// statements, transactions (Snapshot, Session), the one lock for writing, the
// connections that read, the log and who holds it, the clock, and what an error
// means. It names no table.
package lite
