// Package fault breaks whole processes and looks at what is left: it kills, stops and starves them, and holds the
// promises against the database afterwards.
//
// It has tests only, built with the tags fault and soak. `make fault` runs them short, with a fixed seed, `make soak`
// long, with a seed that the report names; PAWL_FAULT_SEED chooses one. A worker of these tests is the test binary
// itself, started once more in a role (roles_test.go). It says what it does line by line on its standard output, and
// the test acts on those lines, not on the clock.
//
// A seed fixes what the test does and when, counted in events. What the killed process was doing at that moment is
// up to the machine, so a seed makes a failure likely again, not certain.
package fault
