//go:build !linux

package sqlite

// networkFS cannot tell on this system; docs/storage.md says so.
func networkFS(string) (kind string, remote bool) { return "", false }
