//go:build race

package storetest

// manyRows is how many rows the large slices have. The race detector slows a
// database written in Go some twentyfold, and a slice of a thousand crosses the
// same borders (parameters of a statement, pages of a read) as one of ten.
const manyRows = 1_000
