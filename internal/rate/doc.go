// Package rate hands out tokens of limits within one process.
//
// A limiter has a block of tokens (job.Bucket), takes the next when that is used up,
// and hands them to those who wait, in the order in which they came:
//
//	Acquire ─► line ─► block ─► done
//	                    │ used up, or too small for the first in line
//	                    ▼
//	              store.Take: settles this block, takes the next, or says when to ask again
//
// There is one question under way at a time, however many wait. What is left of a block
// goes back when nobody has come for a while, and on Close. A limiter that nobody uses
// runs nothing and asks nothing.
package rate
