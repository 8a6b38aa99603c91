// Package consumer runs one subscription: a member of a group, over any backend of streams.
//
// # Life of a delivery
//
//	          turn.go             line.go, start.go         outcome.go
//	feed --- Next ---> waiting ---> ready ---> running ---> settling --- Next ---> feed
//	                 (behind one   (for a         |
//	                  of its key)   slot)      resting (failed, in ordered mode: it stays open)
//
// One goroutine, the loop, makes the turns: a call of Next settles what has ended and fetches
// as much as there are free slots, so a slot is taken before its event is fetched and never
// by two. While a Next is under way ends gather for the one after; when nothing is, an end
// starts a Next at once. There is no timer for it.
//
// # Which verdict
//
// A verdict takes effect when its handler returns: until then the event is open, and in ordered
// mode keeps its key. By the mode of acknowledgement:
//
//	OnSuccess   what the handler said (Ack, Retry, Reject), else nil acks and an error fails
//	Manual      what the handler said; without a word it comes again after a while, uncounted
//	OnReceive   acked before the handler starts; what it says or returns changes nothing
//
// A panic is a failed delivery, unless the handler had said something. A delivery that failed
// as often as Config.Deliveries is dead. In ordered mode one that is to come again stays open
// here; in the others it goes back to the group.
//
// # Order
//
// In ordered mode events of one topic and key stand in a line (line.go); the first of it
// runs. More than Config.Behind behind it, and the stripe of the line is not fetched until there
// are fewer; Stats says so. Lines outlive a lost membership while a handler of them runs, so
// in one process no two events of a key ever run at once.
//
// # Ends
//
// Close fetches nothing more, waits for handlers, settles and leaves; past its bound handlers
// are cancelled with cause job.ErrStopping, and what they had goes back uncounted. A member
// that was taken for dead (stream.ErrFeedLost) forgets what it had, cancels its handlers with
// that cause, and joins again.
//
// # Locks
//
// Consumer.mu guards all state; it is held for no call of a backend, a handler, the observer
// or the backoff function. Message.mu guards one delivery's verdict and is taken after it or
// alone.
package consumer
