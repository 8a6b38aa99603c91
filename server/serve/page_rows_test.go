package serve_test

import (
	"strings"

	"github.com/pawlwork/pawl/store"
)

// rows are what a page may visit because there are many jobs: some are only counted, others read, be it in vain. Those that have ended
// Postgres reads beside the live ones of a list, to their bound; SQLite steps from the newest to the oldest, and does not come to them.
type rows struct{ counted, read, ended int }

func (r rows) and(others ...rows) rows {
	for _, o := range others {
		r.counted, r.read, r.ended = r.counted+o.counted, r.read+o.read, r.ended+o.ended
	}
	return r
}

// What there is in the crowd of the test, and what the pages ask for.
const (
	crowded = 50_000
	queues  = 20
	kinds   = 7  // in all queues alike
	levels  = 9  // priorities
	later   = 13 // one in so many that wait is scheduled
	running = crowded / 2 * 2 / 101
	dead    = crowded / 2 / 20                   // and as many are cancelled
	ofQueue = crowded/2/5/2 + crowded/2/queues/2 // jobs of q001 that wait, and as many that have ended
	shown   = 50 + 1                             // jobs of a page, and one to see that there are more
	slack   = 300                                // what stands beside them: settings, gates, names
)

// lookRows are those of the look: all that wait, by when they are due and once more as a state; all that have ended; what runs, for
// queues, as a state and for workers; what is suspended.
var lookRows = crowded/2 + crowded/2 + crowded/2 + 3*running + running/2 + 2*levels*queues + slack

// What calls of the store may visit.
var (
	// counted are jobs that an index gives, as far as a count goes.
	counted = func(n int) rows { return rows{counted: min(n, store.MaxCounted) + slack} }
	// sought are those that a count has to look at one by one: it does so as far as its bound, whatever it finds.
	sought = rows{counted: store.MaxVisits}
	// ahead are those before the ready jobs of a page, altogether, and what runs of their queues.
	ahead = rows{counted: 50*store.AheadCap(50) + running + slack}
	// inVain is a list that finds too little.
	inVain = rows{read: store.MaxWalked}
)

// listed is a page of a list of which one in so many matches; of several stretches of an index, in each.
func listed(of int) rows { return rows{read: of*shown + slack} }

// ofOneQueue is a list by id of a queue. Neither those that wait nor those that run are in that order: they are looked at as far as they may
// be sorted, those that run twice.
var ofOneQueue = rows{read: levels*shown + slack, counted: store.MaxSorted + 2*running}

// rowsOfPage says what a page should visit.
func rowsOfPage(path string) (rows, bool) {
	plain, filter, _ := strings.Cut(path, "?")
	switch {
	case plain == "/":
		return counted(dead).and(counted(dead), counted(dead)), true // the dead of three errors
	case plain == "/cron", plain == "/cron/s7", plain == "/workers", plain == "/limits", plain == "/services", plain == "/audit", plain == "/settings":
		return rows{read: slack}, true // none of jobs
	case plain == "/workers/17":
		return rows{read: 100 + slack}, true // what it runs
	case strings.HasPrefix(plain, "/queues/"), strings.HasPrefix(filter, "open="): // a sample of 100 for its kinds
		return ofOneQueue.and(rows{read: levels * 50}), true
	case plain == "/queues":
		return rows{read: slack}, true
	case plain == "/find" && !strings.Contains(filter, "{id}"):
		return sought, true // is there a job of such a kind?
	case strings.Contains(path, "{id}"):
		return rowsOfJob(path[strings.Index(path, "} ")+2:])
	}
	switch plain {
	case "/jobs":
		return rowsOfList(filter)
	case "/jobs/scheduled":
		return rowsOfScheduled(filter)
	case "/jobs/retries":
		return rowsOfRetries(filter)
	case "/jobs/dead":
		return rowsOfDead(filter)
	}
	return rows{}, false
}

// rowsOfJob are those of a job's page: why it waits, and who else is like it.
func rowsOfJob(state string) (rows, bool) {
	likeIt := sought // done in the last hour, for what is usual
	switch state {
	case "waiting":
		return likeIt.and(ahead, sought), true // others of its key
	case "running":
		return likeIt.and(sought, rows{counted: running + slack}), true
	case "dead":
		return likeIt.and(counted(dead), counted(dead), rows{counted: running + slack}), true // of its error, of that and its kind
	}
	return rows{}, false
}

// rowsOfList are those of all jobs, narrowed.
func rowsOfList(filter string) (rows, bool) {
	nothing := inVain.and(inVain, counted(1000)) // two pages in vain; then how many there are without the filter
	switch filter {
	case "":
		return listed(1).and(counted(crowded), ahead), true
	case "state=ready", "kind=k*":
		return listed(1).and(sought, ahead), true
	case "state=running": // sorted
		return rows{read: 2*running + slack}.and(counted(running)), true
	case "state=suspended":
		return listed(1).and(counted(running)), true
	case "state=cancelled":
		return listed(1).and(counted(dead)), true
	case "state=done":
		return listed(queues).and(counted(crowded)), true
	case "kind=k3":
		return listed(kinds).and(sought, ahead), true
	case "queue=q001", "queue=q001&order=id":
		return ofOneQueue.and(counted(2*ofQueue+running), ahead), true
	case "queue=q001&kind=k3": // counted once to be sorted, and read
		return ofOneQueue.and(rows{read: store.MaxSorted}, counted(2*ofQueue), ahead), true
	case "queue=none":
		return rows{counted: 4 * running}.and(counted(1000)), true
	case "worker=17":
		return rows{read: 100 + slack}, true
	case "key=c77", "tag=red":
		return inVain.and(sought, ahead), true
	case "created=1h", "created=7d": // half of a walk is for those that have ended
		return listed(1).and(rows{ended: store.MaxWalked / 2}, sought, ahead), true
	case "kind=none", "key=none", "tag=none":
		return nothing, true
	}
	switch {
	case strings.HasPrefix(filter, "error="):
		return nothing, true
	case strings.HasPrefix(filter, "q="): // 20 pages, for each of which those that have ended are walked in vain
		return rows{read: 20 * (store.MaxPage + 10), ended: 20 * store.MaxWalked / 2}, true
	}
	return rows{}, false
}

func rowsOfScheduled(filter string) (rows, bool) {
	switch filter {
	case "":
		return listed(later).and(sought), true
	case "kind=k3":
		return listed(later * kinds).and(sought), true
	case "queue=q001": // the index has them behind those that are ready, in each priority
		return listed(levels).and(counted(ofQueue)), true
	case "queue=q001&q=nothing":
		return rows{read: ofQueue + slack}, true
	}
	return rows{}, false
}

// rowsOfRetries are those of jobs that wait, one by one, 20 pages of them at most: no index has those that failed.
func rowsOfRetries(filter string) (rows, bool) {
	const pages = ofQueue/store.MaxPage + 1
	switch filter {
	case "":
		return rows{read: 20 * (store.MaxPage + 10)}, true
	case "kind=k3":
		return rows{read: crowded / 2}.and(sought), true
	case "queue=q001": // pages by due, of each of which any priority may have all
		return rows{read: pages * ofQueue}.and(sought), true
	case "queue=q001&q=nothing":
		return rows{read: pages * ofQueue}, true
	}
	return rows{}, false
}

func rowsOfDead(filter string) (rows, bool) {
	groups := counted(dead).and(counted(dead), counted(dead), counted(dead)) // the dead of four errors
	switch {
	case filter == "", filter == "groups=all":
		return listed(1).and(counted(dead), groups), true
	case filter == "kind=k3": // and of the kind
		return listed(2*kinds).and(counted(dead), counted(dead), groups), true
	case strings.HasPrefix(filter, "error=") && !strings.Contains(filter, "kind="):
		return listed(1).and(counted(dead)), true
	case strings.HasSuffix(filter, "kind=k3"):
		return listed(2 * kinds).and(counted(dead)), true
	case filter == "queue=q001", filter == "queue=q001&q=nothing":
		return rows{read: dead}.and(counted(dead)), true
	}
	return rows{}, false
}
