package store

import "time"

// Hint says that there may be something to do, and about what. The zero Hint
// means: look at everything. It is never the truth and never needed: who misses
// one finds out by polling.
type Hint struct {
	Subject  Subject
	Name     string    // of the queue, job, topic ...; empty: of any
	Priority int       // of a queue's job
	Due      time.Time // the lowest of a queue's jobs, by the store's clock; zero: now
}

// Subject is what a hint is about. Processes tell each other its number, so a
// number keeps its meaning; a build ignores those it does not know.
type Subject int

const (
	SubjectAll     Subject = iota // everything
	SubjectQueue                  // jobs became ready
	SubjectJob                    // a run was asked to cancel, or a job has ended
	SubjectMembers                // a worker with totals came, left or was lost
	SubjectSetting                // something was declared, set or paused
	SubjectTopic                  // events were appended
	SubjectIntent                 // a transaction has left intents
	SubjectDelay                  // events were accepted that are not due yet
	SubjectGroup                  // a group has news for its members

	SubjectEnd // none: behind the last, for who goes through all of them
)
