package member

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// split is how this process takes part in the totals of its queues, while it has
// any. Guarded by Member.mu.
//
// A total is split over the live workers by job.Split. Workers learn of each
// other from the answers to their beats, at different times, so for a while some
// split by an older version of the registry than others. The portions of all
// processes never add up to more than the total all the same:
//
//  1. A portion shrinks as soon as the process hears of a version in which it is
//     smaller. From its next beat on the store knows that it has.
//  2. A portion grows only when every other live worker that shares has stored
//     that same version: none of them uses more than its portion in it.
//  3. A process that has just registered, or was lost, starts from nothing.
//  4. What those hold that left or were lost is taken off the total. It only
//     becomes less within a version, and with it no portion becomes smaller
//     (job.Split): who heard of more uses no more than who heard of less allows.
//
// Versions never come again, so what was stored for one cannot be taken for
// another. What may run over the total are jobs that began under a larger
// portion: they are not interrupted.
//
// Who comes costs others a part of their portions, until its lease is over if it
// dies at once. A process that ends and is started again, over and over, would
// take all of the total so. Therefore nobody shrinks for a process before it
// shares, and it shares only
//
//   - when it has lived for a beat, unless nobody else shares;
//   - when all who share have stored the version that there was when it came, or a
//     later one. One that has died does not: of a process that lives longer
//     and ends all the same, again and again, no more than two share at a time.
type split struct {
	version int64     // of the registry, by which portions are split; 0: it does not ask to share
	first   int64     // version that it was told
	came    time.Time // it asked to be registered
	waits   int       // beats in a row that were not settled
}

// firstWait is how soon a beat asks again whether the others have heard; each
// further one waits twice as long.
const firstWait = 50 * time.Millisecond

// hear takes over the version of an answer. Until it shares, a process goes on to
// ask with the first that it was told, when it has lived for a beat.
func (s *split) hear(answer store.BeatReply, every time.Duration) {
	if s.first == 0 {
		s.first = answer.Version
	}
	now := standing(answer)
	switch {
	case !now.apart:
		s.version = answer.Version
	case now.others && time.Since(s.came) < every:
		s.version = 0
	default:
		s.version = s.first
	}
}

// Portion is how many slots of a queue with a total a worker may use after the
// answer to a beat, which it used until then.
func Portion(queue string, used int, answer store.BeatReply) int {
	crew, ok := answer.Crews[queue]
	if !ok || !crew.Shares() || crew.Index >= len(crew.Workers) {
		return 0
	}
	now := job.Split(crew.Free(), queue, crew.Workers, crew.Weights)[crew.Index]
	if answer.Settled {
		return now
	}
	return min(used, now)
}

// stand is where the answer to a beat leaves a worker.
type stand struct {
	apart  bool // it does not share
	others bool // somebody else shares one of its totals
	held   bool // a part of a total belongs to those that left or were lost
}

func standing(answer store.BeatReply) (s stand) {
	for _, crew := range answer.Crews {
		others := len(crew.Workers)
		if crew.Shares() {
			others--
		} else {
			s.apart = true
		}
		s.others = s.others || others > 0
		s.held = s.held || crew.Held > 0
	}
	return s
}

// forget is for a process that is not registered.
func (s *split) forget() { s.version, s.first, s.waits = 0, 0, 0 }

// soon is how long to wait for the next beat after one that was sent with a
// version; negative means the usual time. A version that is new is stored
// at once: others wait for it. Who asked to share hears at once what has become
// of it. While others have not stored their version, or what the lost hold is
// not taken back, it is asked again, ever more rarely.
func (s *split) soon(sent int64, answer store.BeatReply, every time.Duration) time.Duration {
	now := standing(answer)
	switch {
	case s.version != sent:
		s.waits = 0
		return 0
	case s.version == 0: // it has not lived for a beat
		return -1
	case now.apart && s.waits == 0:
		s.waits++
		return 0
	case !now.apart && answer.Settled && !now.held:
		s.waits = 0
		return -1
	}
	wait := min(firstWait<<min(s.waits, 20), every)
	s.waits++
	return wait
}
