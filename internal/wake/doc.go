// Package wake carries hints that there may be something to do, from whoever
// knows to the runner that sleeps.
//
// A hint is never the truth and never needed for correctness: a lost hint costs
// at most one poll interval, one too many costs one empty look. So hints are
// merged instead of queued: a [Subscription] holds one bit per queue and one
// token, and giving a hint neither blocks nor allocates.
//
//	Enqueue (this process) --- Ready ---> Hub --- token ---> Subscription.C
//	commits elsewhere --- Listen, heard ---^                 Subscription.Take
//
// [Service] keeps a store's listener running and tells the hub whether it can
// be relied upon, which decides how often the runner polls.
package wake
