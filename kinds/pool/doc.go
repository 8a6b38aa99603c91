// Package pool hands jobs to a pool of warm processes, written in any language.
//
//	func main() {
//		pool.Guard() // first of all
//		...
//		p, err := pool.Register(e, pool.Config{
//			Kinds: []string{"image.caption"},
//			Path:  "/usr/bin/python3", Args: []string{"/srv/caption/child.py"},
//		})
//		...
//		defer p.Close()
//
// # What a child does
//
// It reads a line of JSON from stdin, does the work, writes a line of JSON to stdout, and reads the next. It has one job at
// a time. When stdin ends, it ends.
//
//	{"id":"0193….1","kind":"image.caption","attempt":1,"payload":{"file":"cat.png"}}
//	{"id":"0193….1","status":"ok","result":{"caption":"a cat"}}
//
// The status decides:
//
//	ok         done; the result is kept with the job
//	retry      failed, with the error's text; tried again after the backoff, or after delay
//	dead       failed for good, with the error's text
//	snooze     again after delay, no attempt burned
//	throttled  the job's whole queue cools down, for delay at least, and the job runs again after that; no attempt burned
//
// The delay is in seconds. A child that has much to load may say {"status":"ready"} first; see [Config.Ready]. What the child writes to stderr while it has a job goes to that job's log.
//
// # When a child is replaced
//
// When it says something that is no answer to what it was asked (another id, no JSON, an unknown status, a line that is
// too long, a line that nobody asked for), when it ends, when it takes longer than the timeout, and when its job is
// cancelled, since it cannot be told to stop in the middle. Its job has failed then, except for a cancelled one. The child
// and all that it started is ended as package command does it: SIGTERM, [Config.Grace], SIGKILL, and at once when the
// worker is killed. A child that never gave an answer is followed by the next only after a pause, which grows up to 30 s.
//
// # Threat model
//
// The child is trusted code; payloads are not. A payload reaches the child as data, in one line that cannot break out of its
// place. Children are reused: what one job leaves in a child's memory or files, the next one can see, so the child must
// not mix them up. Children get the environment of [Config.Env] and nothing of the worker's. Lines, waits and logs are
// bounded; memory and CPU of a child are not.
//
// On systems other than Linux a child that starts a session of its own gets away from its end. Windows is refused.
package pool
