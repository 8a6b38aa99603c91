package need

import (
	"errors"
	"sync"
	"testing"
)

// reused are schemas that tests have left behind, by what empties them.
var reused struct {
	sync.Mutex
	free map[string][]Database
}

// ReusedPostgres is Postgres for many small tests that need the same tables: making those takes longer than most of such
// tests. The schema may have been another test's, which made the tables; empty are the statements that remove what it
// left there. After a test that failed it is dropped, the others go with DropReused.
func ReusedPostgres(t testing.TB, empty string) Database {
	t.Helper()
	reused.Lock()
	free := reused.free[empty]
	if n := len(free); n > 0 {
		db := free[n-1]
		reused.free[empty] = free[:n-1]
		reused.Unlock()
		record(t, "postgres")
		leave(t, db, empty)
		return db
	}
	reused.Unlock()
	db := create(t)
	leave(t, db, empty)
	return db
}

// leave empties the schema for another test when this one ends.
func leave(t testing.TB, db Database, empty string) {
	t.Cleanup(func() {
		err := errors.New("the test has failed")
		if !t.Failed() {
			err = execute(db.URL, empty)
		}
		if err != nil {
			if dropped := drop(db); dropped != nil {
				t.Errorf("need: dropping the test's schema (%v): %v", err, dropped)
			}
			return
		}
		reused.Lock()
		defer reused.Unlock()
		if reused.free == nil {
			reused.free = map[string][]Database{}
		}
		reused.free[empty] = append(reused.free[empty], db)
	})
}

// DropReused drops the schemas of ReusedPostgres: TestMain calls it last.
func DropReused() error {
	reused.Lock()
	defer reused.Unlock()
	var err error
	for _, list := range reused.free {
		for _, db := range list {
			err = errors.Join(err, drop(db))
		}
	}
	reused.free = nil
	return err
}
