package store

import "errors"

// What can be wrong with a store. Callers test with errors.Is; the text around
// them names the file, the limit or the version.
var (
	ErrClosed      = errors.New("pawl: store is closed")
	ErrFull        = errors.New("pawl: disk full or failing")       // also "disk I/O error": to a caller they are the same
	ErrReadOnly    = errors.New("pawl: store is read-only")         // file, folder or server does not take writes
	ErrBusy        = errors.New("pawl: store is locked by another") // longer than the busy limit
	ErrCorrupt     = errors.New("pawl: store is damaged")
	ErrForeign     = errors.New("pawl: not a Pawl store")       // not a database, or not ours
	ErrSchemaNewer = errors.New("pawl: schema is newer")        // this build is older than the oldest that may use it
	ErrSchemaOlder = errors.New("pawl: schema is not migrated") // and this engine may not migrate
	ErrNetworkFS   = errors.New("pawl: network file system")    // SQLite locks are not safe there
	ErrTxTooLong   = errors.New("pawl: transaction was held too long and is rolled back")
	ErrForeignTx   = errors.New("pawl: transaction is not of this store's database")
	ErrInsideTx    = errors.New("pawl: engine call inside a transaction, use the transaction's own methods")
	ErrLogHeld     = errors.New("pawl: write-ahead log cannot be emptied") // somebody reads from it without end; SQLite's Health only
	ErrUnavailable = errors.New("pawl: store is unavailable")              // connection lost; nothing was done
	ErrInUse       = errors.New("pawl: namespace is in use")               // by live workers; Erase only
)
