// Package intents applies what users' transactions want done to rows that others
// need, too, right after their commit. It owns the table pawl_intent. A user's
// transaction holds the one write lock of the file anyway, so nothing is won here
// but that both stores do the same: see the room of store/postgres.
package intents
