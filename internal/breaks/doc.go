// Package breaks proves that the tests can fail.
//
// A green test says little until it has been seen red. For each promise and each costly line of the checklist there
// is a small patch here that breaks the code in the way the promise forbids, and names the test that must notice:
//
//	# breaks: S3
//	# why: a used-up restart budget ends the service as if it had finished cleanly
//	# test: go test ./supervise -run TestS3_UsedUpBudgetIsAnError
//	diff --git a/supervise/service.go b/supervise/service.go
//	...
//
// The three header lines are required; "why" may be repeated. Several promises are separated by commas. The test is
// one package and one test, or a subtest of it (TestStore/job_claim); -race and -tags may be given too. A patch may
// not touch a _test.go file: a changed test proves nothing about the one that is there.
//
// To add one: break the code by hand, see the test fail, run `git diff > internal/breaks/S3-budget.patch`, put the
// header above it, and undo the change in the code.
//
// Two things read the patches. The tests of this package, part of make test, check quickly that every patch still
// applies and names a test that exists. The program in run, part of make soak, applies each to a copy of the tree
// and requires that the named test passes without the patch, compiles with it, and then fails.
package breaks
