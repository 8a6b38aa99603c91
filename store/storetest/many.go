//go:build !race

package storetest

// manyRows is how many rows the large slices have.
const manyRows = 10_000
