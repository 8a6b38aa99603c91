package job

import "github.com/google/uuid"

// ID names a job. It is a UUIDv7 made by the caller, so that a send whose
// answer was lost can be repeated under the same id.
type ID = uuid.UUID

// NewID makes an id. Ids of one process ascend, which keeps jobs enqueued one
// after the other in that order when their due times are equal.
func NewID() ID { return uuid.Must(uuid.NewV7()) }

// ParseID reads an id in its usual form of 36 characters.
func ParseID(s string) (ID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != len(id.String()) {
		return ID{}, Invalid("id", s, "must be a UUID of 36 characters, such as 01931c5e-1f6a-7000-8000-000000000000")
	}
	return id, nil
}

// WorkerID names one boot of one process, as numbered by the store.
type WorkerID int64
