package lite

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// CallSite is where a call came from, as the stack was: it costs little to keep
// and is read only when there is something to say.
type CallSite [32]uintptr

// Here is the call site of the caller's caller.
func Here() (p CallSite) {
	runtime.Callers(3, p[:])
	return p
}

// ownPackages are on the way from the user's program to a store.
var ownPackages = []string{
	"github.com/pawlwork/pawl.", "github.com/pawlwork/pawl/store", "github.com/pawlwork/pawl/internal/",
	"github.com/pawlwork/pawl/pawltest.",
	"database/sql.", "runtime.",
}

// String is the innermost line of the user's program, empty when there is none
// on the stack: then the engine itself has called.
func (p CallSite) String() string {
	frames := runtime.CallersFrames(p[:])
	for {
		f, more := frames.Next()
		if f.Function != "" && !own(f) {
			return fmt.Sprintf("%s:%d", filepath.ToSlash(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

func own(f runtime.Frame) bool {
	if strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	for _, name := range ownPackages {
		if strings.HasPrefix(f.Function, name) {
			return true
		}
	}
	return false
}
