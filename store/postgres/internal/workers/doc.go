// Package workers is the registry: who works here, by which lease, and which runs
// its handlers have begun.
package workers
