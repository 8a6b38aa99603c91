// Package archtest holds the rules of the house as tests. It has no code of its own to import.
//
// A rule that matters executes: what a reviewer would otherwise have to remember is a function over the source
// that returns findings, and a test that wants none.
//
//	layers_test.go      the table: which package may import which
//	imports_test.go     dependencies point one way; the facade links no database driver
//	clock_test.go       only a store's clock file asks the time
//	documented_test.go  every exported name and every package has its comment
//	names_test.go       no util, helper, manager, common, base
//	waiting_test.go     no test skips, and none sleeps to wait
//	init_test.go        no init beyond driver registration
//	portable_test.go    no machine's paths and no registry's host names in the repository
//	modules_test.go     every direct dependency is explained in docs/dependencies.md
//	pages_test.go       code on how-to pages is code of the tree; what pages name and link to exists
//	checklist_test.go   every number in the name of a test has an entry in docs/checklist.md or docs/promises.md
//	figures_test.go     the README's figures are in docs/performance.md
//	walk_test.go        docs/walk.md names functions that exist, and no more of them than it did
//
// The import rules read `go list` of the root module. The other rules read the files of the whole repository, so
// they also hold in the modules beside it. Each rule has a second test that feeds it violations: a rule that cannot
// fail proves nothing.
package archtest
