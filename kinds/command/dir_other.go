//go:build !unix

package command

import (
	"os"

	"github.com/pawlwork/pawl/kinds/internal/guard"
)

func openDir(string, string) (*os.File, error) { return nil, guard.ErrUnsupported }
