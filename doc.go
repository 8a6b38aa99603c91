// Package pawl is durable background work for Go: jobs on queues, run at least
// once, retried and fenced, in the same database and the same transaction as
// the user's own rows. It runs embedded on SQLite with nothing else installed,
// or on a Postgres pool in a cluster.
//
//	e, err := pawl.New(sqlite.File("work.db"), pawl.Config{
//		Queues: pawl.Queues{"default": {Workers: 10}},
//	})
//	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error { … })
//	e.Enqueue(ctx, Welcome{UserID: 42})
//	e.Run(ctx)
//
// Beside jobs there are events: a log in the same database ([Engine.Publish]), read by
// cursors ([HandleCursor], [Engine.Cursor]) and by groups of consumers ([Subscribe]) with
// retries, dead letters and order by key.
//
// # What is promised
//
//   - P1 Accepted is durable: Enqueue returns nil only after the commit is on disk.
//   - P2 Fenced at-least-once: an accepted job runs until an outcome commits; a
//     run that lost its lease can change nothing, and its context is cancelled
//     with cause ErrLeaseLost.
//   - P3 One commit: jobs and the user's SQL share a transaction ([Engine.Tx]); a
//     handler can finish its job in the transaction of its effect ([Tx.Finish]),
//     or acknowledge its event ([Tx.Ack]), which makes that effect exactly-once in
//     that database, and only there.
//   - P4 No cursor skips: readers see every event, also one whose transaction
//     commits late.
//   - P5 Nothing waits silently: [Engine.Why] names what a job waits for.
//   - P6 Consistency can be proved: [Engine.Check].
//   - P7 Stop is graceful and honest: see [Engine.Run].
//   - P8 Faults stay local: a panic or a poison payload costs its own job only.
//   - P9 The truth wins: a late cancel never turns done work into cancelled.
//   - P10 Everything has a bound, and going over it is an error at the caller.
//
// A handler may run more than once: the process can die between its effect and
// its commit. Effects outside the database need [IdempotencyKey]; effects inside
// it belong into [Engine.Tx] with [Tx.Finish].
//
// How to do what, with the failure cases, is in the folder docs/howto.
package pawl
