package claims

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// position is a place in the order in which a priority of a queue is claimed.
// A look goes on behind it.
type position struct {
	due time.Time
	ID  job.ID
}

func (p position) before(q position) bool {
	if !p.due.Equal(q.due) {
		return p.due.Before(q.due)
	}
	return bytes.Compare(p.ID[:], q.ID[:]) < 0
}

// previous is the position right in front of a job, so that a look finds it.
func (p position) previous() position {
	for i := len(p.ID) - 1; i >= 0; i-- {
		p.ID[i]--
		if p.ID[i] != 0xff {
			return p
		}
	}
	p.due = p.due.Add(-time.Microsecond) // the id was zero, and is the highest now
	return p
}

// positions has one for each priority.
type positions [job.MaxPriority + 1]position

// Start is in front of everything.
var Start = position{due: jobs.LongAgo}

// frontiers remember where claims go on, so that a look does not step over the
// dead index entries of what was claimed before: with a snapshot held open
// anywhere in the database nobody can remove those.
//
// The rules that keep a job from being passed over:
//
//   - A frontier moves behind a row only when the row was claimed, or when this
//     offer can never take it. It is kept per offer for that reason.
//   - It is never ahead of the store's clock: a row that enters waiting is due
//     now at the earliest.
//   - A hint of a commit lowers it to the lowest due time that was committed. A
//     hint that comes while a claim is under way also bounds where that claim's
//     advance ends: the claim may have looked before the commit. It never cancels
//     the advance: a process that enqueues hints itself on every commit, and its
//     frontier would never move.
//   - It is dropped when the clock steps back, when a claim fails, and when the
//     listener connects anew.
//   - Every sweepEvery a look goes behind it (sweep.go), for whatever the hints
//     missed: a row whose lock another claim held and gave back, a commit whose
//     process died before it could tell.
type frontiers struct {
	mu      sync.Mutex
	Fronts  map[frontName]*front
	latest  time.Time // the store's clock as last seen
	guess   *pg.Clock // what it shows by now, about
	Dropped int64     // how often everything was forgotten
	// Timed is how long a sweep took, for tests that have it never be slow.
	Timed func(took time.Duration) time.Duration
}

type frontName struct {
	queue string
	offer string // its fingerprint
}

// Lane names what an offer sees of a queue, but for what waits behind gates.
func Lane(queue, offer string) frontName { return frontName{queue, offer} }

// front is what is known about one queue, as one offer sees it.
type front struct {
	at    positions
	Views []*since // of the claims under way
	next  upcoming
	lookedAt
	mixed time.Time // when it last held jobs that the offer does not take
	sweep sweep
}

// lookedAt is what the last look at a lane found.
type lookedAt struct {
	quiet bool // nothing was ready, and no hint came since
	full  bool // it gave all that was asked for: a backlog
}

// upcoming is when the next scheduled job of a lane falls due, as far as is
// known: from the last look, and lowered by hints since. It saves the look where
// a claim was woken for a job it has found.
type upcoming struct {
	known bool
	at    time.Time // zero: none
}

// maxFronts bounds the memory of a process that is offered ever new things.
const maxFronts = 10_000

// fingerprint tells offers apart.
func fingerprint(o job.Offer) string {
	var b strings.Builder
	for _, k := range o.KindNames() {
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(strconv.Itoa(o.Kinds[k]))
		b.WriteByte(',')
	}
	needs := slices.Clone(o.Capabilities)
	slices.Sort(needs)
	for _, c := range needs {
		b.WriteByte('+')
		b.WriteString(c)
	}
	return b.String()
}

// View is a lane as a claim found it.
type View struct {
	name    frontName
	At      positions
	since   *since
	dropped int64
	mixed   bool
	next    upcoming
	lookedAt
}

// mixedFor is how long a lane that held jobs for other offers is looked at
// before it is locked.
const mixedFor = time.Minute

func (f *frontiers) lane(name frontName) *front {
	l := f.Fronts[name]
	if l == nil {
		if f.Fronts == nil || len(f.Fronts) >= maxFronts {
			f.Fronts = map[frontName]*front{}
			f.Dropped++
		}
		l = &front{}
		for p := range l.at {
			l.at[p] = Start
		}
		f.Fronts[name] = l
	}
	return l
}

// View shows a lane to a claim, which has to leave it when it is through with it.
func (f *frontiers) View(name frontName) View {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lane(name)
	hints := &since{}
	l.Views = append(l.Views, hints)
	return View{name: name, At: l.at, since: hints, dropped: f.Dropped, lookedAt: l.lookedAt, next: l.next.asOf(f.about()),
		mixed: f.latest.Sub(l.mixed) < mixedFor}
}

// isQuiet reports whether nothing is ready in a lane, as far as is known.
func (f *frontiers) isQuiet(name frontName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.Fronts[name]
	return l != nil && l.quiet
}

// leave ends a view: hints are no longer kept for it.
func (f *frontiers) leave(v View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.Fronts[v.name]; l != nil {
		l.Views = slices.DeleteFunc(l.Views, func(s *since) bool { return s == v.since })
	}
}

// since is what hints have told since a claim looked at a lane.
type since struct {
	hinted bool
	lowest [job.MaxPriority + 1]*position // nil: none
}

func (s *since) add(priority int, at position) {
	s.hinted = true
	if lowest := s.lowest[priority]; lowest == nil || at.before(*lowest) {
		s.lowest[priority] = &at
	}
}

// about is the store's time, give or take.
func (f *frontiers) about() time.Time {
	if f.guess == nil {
		return f.latest
	}
	return f.guess.Estimate().Add(10 * time.Millisecond)
}

// asOf is what is still ahead of a time. What has fallen due since is ready, and
// what comes after it is not known.
func (u upcoming) asOf(now time.Time) upcoming {
	if !u.at.IsZero() && !u.at.After(now) {
		return upcoming{}
	}
	return u
}

// expect notes when the next scheduled job falls due. A hint since the view may
// have told of an earlier one.
func (f *frontiers) expect(v View, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.Fronts[v.name]
	if l == nil || f.Dropped != v.dropped {
		return
	}
	if told := l.next.at; v.since.hinted && !told.IsZero() && (next.IsZero() || told.Before(next)) {
		next = told
	}
	l.next = upcoming{known: true, at: next}
}

// advance moves a lane to where a claim ended: of each priority at most to the
// lowest hint that came since the view.
func (f *frontiers) advance(v View, to positions, found lookedAt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.Fronts[v.name]
	if l == nil || f.Dropped != v.dropped {
		return
	}
	for p := range to {
		end := to[p]
		if hint := v.since.lowest[p]; hint != nil && hint.before(end) {
			end = *hint
		}
		if l.at[p].before(end) {
			l.at[p] = end
		}
	}
	found.quiet = found.quiet && !v.since.hinted
	l.lookedAt = found
}

// mix remembers that the lane holds jobs for other offers too.
func (f *frontiers) mix(v View, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.Fronts[v.name]; l != nil {
		l.mixed = now
	}
}

// Lower makes the next looks begin at a due time, or before.
func (f *frontiers) Lower(queue string, priority int, due time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, l := range f.Fronts {
		if name.queue != queue {
			continue
		}
		l.lower(priority, position{due: due})
		if due.After(f.about()) && (l.next.at.IsZero() || due.Before(l.next.at)) {
			l.next.at = due
		}
	}
}

// lower takes a hint over. A priority out of bounds comes from another build, or
// from nobody: the lane is only looked at.
func (l *front) lower(priority int, to position) {
	l.quiet = false
	if priority < job.MinPriority || priority > job.MaxPriority {
		return
	}
	for _, s := range l.Views {
		s.add(priority, to)
	}
	if to.before(l.at[priority]) {
		l.at[priority] = to
	}
}

// wake makes the next look at a queue a whole one, without moving anything. An
// empty name means every queue.
func (f *frontiers) wake(queue string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, l := range f.Fronts {
		if queue == "" || name.queue == queue {
			l.quiet = false
		}
	}
}

// Drop forgets everything.
func (f *frontiers) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Fronts = nil
	f.Dropped++
}

// clock notes the store's time; false when it has stepped back, and then
// everything is forgotten: new jobs are due behind the frontiers.
func (f *frontiers) clock(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Before(f.latest) {
		back := f.latest.Sub(now) > backstep
		f.latest = now
		if back {
			f.Fronts = nil
			f.Dropped++
			return false
		}
		return true
	}
	f.latest = now
	return true
}

// backstep is less than any step of a clock, and more than two answers that
// overtake each other differ by: those are covered by the hints.
const backstep = 100 * time.Millisecond
