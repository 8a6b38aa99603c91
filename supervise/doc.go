// Package supervise runs the background loops of a process: it starts them in order, keeps them
// running, stops them in reverse, and tells what they have done. It needs the standard library only.
//
// # Services
//
// A tree is a list of named services, in groups if there are many:
//
//	tree, err := supervise.New(supervise.Config{
//		Services: []supervise.Service{
//			supervise.Once("migrate", migrate),
//			supervise.Loop("listen", listen),
//			supervise.Group("keeper",
//				supervise.Every("rescue", 5*time.Second, rescueOnce),
//				supervise.EveryShard("purge", time.Minute, queues, purgeQueue, supervise.OnlyIfMine(lease)),
//			),
//		},
//	})
//
// [Every] calls a function that does one round of work; the ticking is done here, so that the function can
// be tested by calling it. [EveryShard] does so for each of several shards. [Loop] calls a function that
// runs until its context ends. [Once] calls a function that must succeed before the next service is
// started. Every function gets a context that ends when the service is asked to stop, with the
// cause [ErrStopped], and should then return soon.
//
// # States
//
//	       Start               due, Wake
//	new ----------> running <-------------> waiting        (waiting: ticks only)
//	 |                | |  \
//	 |  error, panic  | |   `-- returned nil -----------------------> done
//	 |                | `-- policy gave up -------------------------> failed ---> error from Wait
//	 |                |    ^
//	 |   policy: yes  v    | pause is over
//	 |              restarting
//	 |
//	 |                running, waiting, restarting -- Stop --> stopping ---> stopped
//	 `-- Stop ------------------------------------------------------------> stopped
//
// A [Supervisor] lives once. Start waits for each Once, then returns; Stop returns the names of the
// services that did not stop; [Supervisor.Wait] blocks until everything has ended or a service is beyond
// its policy. The usual program is:
//
//	if err := tree.Start(ctx); err != nil { // ctx ends on SIGTERM
//		return err
//	}
//	err := tree.Wait()
//	stuck := tree.Stop(context.Background())
//
// # Ticks
//
// The first run is at once, or after a random part of [StartJitter]. Then one run starts an interval after the
// start of the one before. With an interval of 10 and a second run that takes 25:
//
//	0         10                       35        45
//	|run      |run...................  |run      |run
//	               ^         ^
//	               20 and 30 are lost: the late tick starts at 35, those after it count from there
//
// Runs of one tick never overlap. A run that returns [NextIn] chooses the next start itself, to drain a backlog or
// to sleep until something is due; [Supervisor.Wake] asks for a run now, for loops that run on hints and
// tick only in case a hint was lost.
//
// # What happens when
//
//   - A tick's function returns an error: it is logged with service and shard, counted, and the tick
//     goes on at its interval. The policy is not asked.
//   - A Loop or Once returns an error: the policy is asked. Returning nil is a clean end, under every policy.
//   - A function panics, or leaves through runtime.Goexit: it does not end the process and never passes for a
//     success. A panic is logged with its stack, counted, and the policy is asked, for ticks too; the other
//     shards of the cycle run first. Goexit counts as an error. A tick restarted after a panic waits for
//     the policy's pause and its next due time, whichever is later.
//   - The policy says no: the service is failed, [Supervisor.Wait] returns an error with [ErrGaveUp] and
//     the last failure in its chain, and the other services run on until Stop. If it was a Once, Start
//     stops the tree and returns that error.
//   - A shard fails three times in a row: it is skipped for ten cycles, then tried again. One failure more
//     and it is skipped for the next ten.
//   - A function ignores the end of its context: Stop returns its name after the grace period and Wait
//     returns [ErrStuck]. Go cannot end a goroutine; the process has to.
//   - A function returns an error after its service was asked to stop: if the error is the context's it is
//     ignored, otherwise it is logged and counted. The service is stopped either way; if it panicked, it is failed.
//   - The context of Start ends: the tree stops as by Stop, within Config.Grace.
//   - Start is called after Stop: nothing is started and [ErrStopped] returned.
//   - Two processes run the same tick: nothing here prevents it. [Leadership] makes it rare, to save work;
//     the tick has to be harmless.
//
// # Policies
//
//	Never{}                  the first failure is final
//	OnceMore{}               one restart, at once
//	Bounded{Max, Window}     at most Max restarts in any period of length Window, at once
//	Always{First, Limit}     every restart, after a pause that doubles, with jitter
//
// A tick restarts at its interval at the earliest, so a Bounded window for a tick has to span more than
// Max intervals to ever be used up.
//
// # Looking at it
//
// [Supervisor.Snapshot] costs a lock per service and can be called as often as a page is shown or metrics
// are scraped.
package supervise
