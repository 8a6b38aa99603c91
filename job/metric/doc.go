// Package metric has what processes measure: of the jobs of a queue and kind, of
// failures that are alike, and of a worker, each for a minute. A value of one minute
// and process adds up with those of others, in any order and grouping, to the value
// of all of them: counts and histograms are added, of the rest the bounded part is
// kept that does not depend on the order. So values may be merged over processes, and
// into hours, and a reader may merge any range.
//
// A store keeps values as bytes and never looks into them.
package metric
