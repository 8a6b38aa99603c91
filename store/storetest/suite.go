package storetest

import (
	"slices"
	"testing"

	"github.com/pawlwork/pawl/store"
)

// Fresh makes an empty database and gives what opens it. Whatever the database
// needs to disappear again belongs into t.Cleanup.
type Fresh func(t *testing.T) store.Opener

// Run holds a store against the suite. Each case gets a database of its own,
// which Check must find clean when the case ends.
func Run(t *testing.T, f Features, fresh Fresh) {
	for _, v := range suite() {
		t.Run(v.name, func(t *testing.T) {
			for _, c := range v.cases {
				if f.missing(c.needs) != "" {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel() // databases are apart, and most of a case is waiting for the disk
					c.run(newDatabase(t, fresh, c.settings))
				})
			}
		})
	}
}

// verb is one file of the suite.
type verb struct {
	name  string
	cases []testCase
}

// testCase is one promise about a verb.
type testCase struct {
	name  string
	needs Features
	// settings the store is opened with.
	settings store.Settings
	run      func(d *database)
}

// suite is everything a store must pass, in the order of docs/conformance.md.
func suite() []verb {
	return []verb{
		{"job_enqueue", jobEnqueue()},
		{"resend", resend()},
		{"unique", unique()},
		{"job_claim", jobClaim()},
		{"hand_over", handOver()},
		{"claim_filter", claimFilter()},
		{"gate", slices.Concat(gates(), gateTurns(), gateOrder())},
		{"claim_repeat", claimRepeat()},
		{"job_finish", jobFinish()},
		{"job_fence", jobFence()},
		{"finish_again", finishAgain()},
		{"follow_up", followUps()},
		{"schedule", schedules()},
		{"job_note", jobNote()},
		{"job_cancel", jobCancel()},
		{"job_retry", jobRetry()},
		{"job_delete", jobDelete()},
		{"verb", verbs()},
		{"operation", operations()},
		{"pause", pause()},
		{"cool_down", coolDown()},
		{"control", control()},
		{"serve", serve()},
		{"worker", workers()},
		{"worker_hold", workerHold()},
		{"split", split()},
		{"rescue", rescue()},
		{"claim_bytes", claimBytes()},
		{"worker_alone", workerAlone()},
		{"expire", expire()},
		{"redate", redate()},
		{"purge", purge()},
		{"due", due()},
		{"metric", metrics()},
		{"unserved", unserved()},
		{"check", check()},
		{"repair", append(repair(), repairLoad()...)},
		{"unreadable", unreadable()},
		{"read", read()},
		{"list", append(list(), listsOfMany()...)},
		{"queues", queues()},
		{"audit", audit()},
		{"tx", transactions()},
		{"tx_operate", txOperate()},
		{"intent", intent()},
		{"limit", rates()},
		{"log", events()},
		{"seen", seenEvents()},
		{"version", versions()},
		{"delay", delayedEvents()},
		{"trim", trims()},
		{"cursor", cursors()},
		{"listen", listen()},
		{"concurrency", concurrency()},
		{"namespace", namespaces()},
		{"erase", erase()},
		{"close", closing()},
	}
}
