//go:build !linux

package lite

// NetworkFS cannot tell on this system; docs/storage.md says so.
func NetworkFS(string) (kind string, remote bool) { return "", false }
