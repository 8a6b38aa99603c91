package memory

import "time"

// now is the backend's clock.
func now() time.Time { return time.Now().UTC() }
