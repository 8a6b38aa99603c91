// Package demo has small handlers that show what jobs can come to, for trying
// Pawl out, for tests of a deployment, and for a system to look at.
//
//	demo.Register(e)
//	_, err := e.Enqueue(ctx, demo.Sleep{Seconds: 2})
//
//	pawl.demo.echo      is done, and its result is what it was given
//	pawl.demo.sleep     takes its time, and ends at once when it is asked to
//	pawl.demo.fail      fails a number of times, or always, or is dead at once
//	pawl.demo.throttle  is throttled a number of times, and its queue cools down
//	pawl.demo.panic     panics a number of times, or always
//	pawl.demo.progress  goes on step by step, and says how far it is
//
// None of them touches anything outside of its job, but for the queue that cools down.
package demo
