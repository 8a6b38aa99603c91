// Package streamtest is what every backend of streams must pass. A case is about the backend
// and calls its Feed; the runtime of groups has tests of its own.
//
//	func TestConformance(t *testing.T) {
//		streamtest.Run(t, func(t *testing.T) streamtest.Fixture { ... })
//	}
//
// A backend declares what it can do (stream.Features). A case that needs more than that runs
// only as far as to see that it is refused by name: no case is skipped.
package streamtest
