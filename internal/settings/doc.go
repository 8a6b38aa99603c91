// Package settings follows what is declared and set in a namespace: it notices a
// change, reads everything once, and tells whoever acts on it.
//
//	answers of beats and claims --- Heard ----+
//	Hub (SubjectSetting) ---------------------+--> Mirror --- Look ---> store.Settings
//	an enqueue of a process that does not run --- Refresh          |
//	                                               Changed <-------+ store.Resolve
//
// Nobody asks whether something has changed: the revision comes with answers that
// are asked for anyway, so an idle process pays no statement. A revision that was
// heard before its change was read only costs one more look.
//
// A [Finder] finds the queues that patterns name: from hints, and by a bounded look
// at those that have waiting jobs.
package settings
