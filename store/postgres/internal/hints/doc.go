// Package hints tells claims of jobs that became ready: this process's by a
// registered function, others by NOTIFY, and all of them by rows that users'
// transactions leave. Nothing depends on a hint: who misses one finds out by
// polling.
package hints
