package lite

// Snapshot is one namespace as a transaction sees it, all of one moment.
type Snapshot struct {
	*Conn
	Namespace int64
	Clock     *Clock
}

// On prepares a statement whose first parameter is the namespace, as that of
// nearly every statement is.
func (s *Snapshot) On(text string) *Query { return s.Query(text).Int(s.Namespace) }

// Session is one open write transaction: the writer's own, or a user's. Its time
// is read once, under the write lock, so that time and commit order agree.
type Session struct {
	Snapshot
	Now int64 // microseconds
}

// NewSession is one that begins now.
func NewSession(c *Conn, namespace int64, k *Clock) Session {
	return Session{Snapshot{c, namespace, k}, k.Now()}
}
