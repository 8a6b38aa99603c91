package settings

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// By primary key.
const (
	raiseRevision = `UPDATE pawl_namespace
	SET revision = max(revision + 1, ?2)
	WHERE id = ?1
	RETURNING revision`

	revisionNow = `SELECT revision
	FROM pawl_namespace
	WHERE id = ?`
)

// raise gives what is declared and set a new revision, in the commit that changes
// it. It is a moment in microseconds, later than all before it whatever the clock
// does, and so tells the order in which versions were seen.
func raise(t *lite.Session) (revision int64, err error) { return t.On(raiseRevision).Int(t.Now).One() }

// Revision is that of what is declared and set.
func Revision(c *lite.Snapshot) (int64, error) { return c.On(revisionNow).One() }

// Raise says that what is declared and set has changed, in the transaction that has
// removed some of it.
func Raise(t *lite.Session) error {
	_, err := raise(t)
	return err
}
