package sqlite

// snapshot is one namespace as a transaction sees it, all of one moment.
type snapshot struct {
	*conn
	namespace int64
	clock     *clock
}

// on prepares a statement whose first parameter is the namespace, as that of
// nearly every statement is.
func (s *snapshot) on(text string) *query { return s.query(text).int(s.namespace) }

// session is one open write transaction: the writer's own, or a user's. Its time
// is read once, under the write lock, so that time and commit order agree.
type session struct {
	snapshot
	now int64 // microseconds
}

// newSession is one that begins now.
func newSession(c *conn, namespace int64, k *clock) *session {
	return &session{snapshot{c, namespace, k}, k.now()}
}
