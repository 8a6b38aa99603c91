package streamtest

import "time"

// watch measures how long a case takes, in its own time.
func watch() (since func() time.Duration) {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
