// Package pgproxy is a Postgres proxy that loses the answers of commits.
//
// A connection that is reset at some moment (toxiproxy, a killed server) rarely breaks at the one that matters: between
// a commit and its answer. This proxy knows enough of the protocol to break there each time:
//
//	proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate { return pgproxy.Cut })
//
// For each transaction that a client is about to commit the judge says what becomes of it:
//
//	Deliver  the server commits, the client learns of it
//	Cut      the server commits, the connection breaks before the answer
//	Mute     the server commits, the connection stays and says nothing any more
//	Drop     the server never hears of the commit and undoes it, then the connection breaks
//	Late     the connection breaks; the server has done all but commit, and does so when Release says so
//
// Cut, Drop and Late look the same to the client. Whatever it concludes must be right for all three.
//
// It can also be slow: Throttle says how many bytes a second it carries.
//
// # How it knows
//
// A client's messages are collected up to the one that asks for an answer (Sync, or a simple Query). Such a unit commits
// if it holds a COMMIT, or statements outside of BEGIN and COMMIT: those are committed by the Sync. The server's answer is
// collected up to its ReadyForQuery, which it sends after the commit. Only then is it passed on, or not.
package pgproxy
