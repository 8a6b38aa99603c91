// Package schedules keeps how far schedules have come, and fires them: it moves one
// on and accepts the jobs of its due times in one transaction. It owns the table
// schedule. Rows are locked in the order of their names, before anything of jobs.
package schedules
