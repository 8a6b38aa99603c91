//go:build !linux

package boot

// self offers no proof on this system.
func self() Identity { return Identity{} }

func dead(Identity, Identity) bool { return false }
