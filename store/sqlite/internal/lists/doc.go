// Package lists answers what people ask about jobs: lists, counts, why jobs do not
// run. It changes nothing, and what each answer reads is bounded (P10).
package lists
