package sqlite

import (
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The forms of an address:
//
//	sqlite:work.db        a path, relative to the working directory
//	sqlite:/var/work.db   an absolute path
//	sqlite:///var/work.db the same, as a URL
//	sqlite::memory:       a new, empty store in memory
//
// The path is taken as it is: nothing is decoded, and there are no options. What
// follows "//" up to the next slash is a host in a URL, and a file has none:
// "sqlite://work.db" is refused, because people mean different files by it.
const forms = `"sqlite:work.db" (relative), "sqlite:/var/work.db" or "sqlite:///var/work.db" (absolute), or "sqlite::memory:"`

func init() { store.RegisterScheme("sqlite", parse) }

// parse reads an address. Its errors do not repeat it: one that was meant for
// another database may hold a password.
func parse(address string) (store.Opener, error) {
	path := strings.TrimPrefix(address, "sqlite:")
	switch {
	case path == "":
		return nil, job.Invalid("store address", "sqlite:", "must be "+forms)
	case path == ":memory:":
		return Memory(), nil
	case strings.ContainsRune(path, '?'):
		return nil, job.Invalid("store address", "sqlite:…?…", "must have no options, set sqlite.Options with sqlite.File; must be "+forms)
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		return nil, job.Invalid("store address", "sqlite://…", "must not name a host; must be "+forms)
	}
	return File(strings.TrimPrefix(path, "//")), nil
}
