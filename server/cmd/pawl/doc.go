// Pawl is the command line of Pawl: noun, then verb.
//
//	pawl serve                                    # an engine and its API on 127.0.0.1:7340
//	pawl job enqueue welcome '{"user":42}' --in 10m
//	pawl job list --state dead --json
//
// Every verb is a call of the HTTP API (server/httpapi): of a server that runs, or of the
// same handler inside this process, on a store that is opened and never migrated unasked.
// One file has the verbs of one noun.
package main
