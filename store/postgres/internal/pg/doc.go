// Package pg is how statements reach Postgres: connections and who may have them
// (role.go), sessions (a
// transaction of the store's own, or a user's), retries, what an error means, the
// server's clock, COPY and rows. It names no table of ours.
package pg
