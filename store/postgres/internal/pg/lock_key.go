package pg

import (
	"hash/fnv"
	"strconv"
)

// LockKey names something of a namespace to the server's advisory locks. Two that share one
// by chance only take turns.
func (db *DB) LockKey(kind, name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(db.Schema + "\x00" + kind + "\x00" + strconv.Itoa(int(db.Namespace)) + "\x00" + name))
	return int64(h.Sum64())
}
