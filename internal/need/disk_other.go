//go:build !linux

package need

import "errors"

// mountSmall knows no way.
func mountSmall(string, int) (func() error, error) { return nil, errors.ErrUnsupported }
