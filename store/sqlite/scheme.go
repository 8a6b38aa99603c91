package sqlite

import (
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Addresses are "sqlite:path/to/file" and "sqlite::memory:".
func init() {
	store.RegisterScheme("sqlite", func(address string) (store.Opener, error) {
		path := strings.TrimPrefix(address, "sqlite:")
		switch path {
		case "":
			return nil, job.Invalid("store address", address, `must be "sqlite:path/to/file" or "sqlite::memory:"`)
		case ":memory:":
			return Memory(), nil
		}
		return File(path), nil
	})
}
