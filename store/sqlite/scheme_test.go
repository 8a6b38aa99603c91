package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// An address names the file that it seems to name, or is refused.
func TestScheme_NamesTheFileItSeemsTo(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	absolute := filepath.ToSlash(filepath.Join(dir, "work.db"))
	for address, want := range map[string]string{
		"sqlite:work.db":                     absolute,
		"sqlite:./work.db":                   absolute,
		"sqlite:" + absolute:                 absolute,
		"sqlite://" + absolute:               absolute, // two slashes before that of the path
		"sqlite:50% off.db":                  filepath.Join(dir, "50% off.db"),
		"sqlite::memory:":                    ":memory:",
		"sqlite:":                            "",
		"sqlite://":                          "",
		"sqlite://work.db":                   "",
		"sqlite://localhost/work.db":         "",
		"sqlite://me:secret@host/work.db":    "",
		"sqlite:work.db?mode=ro&pass=secret": "",
		"sqlite:work.db?pawl_schema=secret":  "",
		"sqlite::memory:?pawl_tx=secret":     "",
	} {
		o, err := store.Parse(address)
		if want == "" {
			if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), `"sqlite:work.db"`) {
				t.Errorf("%s: %v, want to be told what to write", address, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: its error repeats it: %v", address, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		s := open(t, o)
		got := s.file.Path
		if s.file.Memory {
			got = s.file.Name
		}
		if got != want {
			t.Errorf("%s opened %s, want %s", address, got, want)
		}
	}
}
