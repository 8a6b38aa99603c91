// Package boot tells whether a process that registered from this machine is
// dead, so that a restart need not wait until the lease of its predecessor has
// run out.
//
// Only proof counts. A process is proven dead when it was started on the same
// machine as the asking one, and
//
//  1. there is no process of its number any more, or
//  2. that process has ended and only waits to be collected (a zombie), or
//  3. that process was started at another time: the number was given away again.
//
// The same machine means the same start of the same kernel, the same pid
// namespace and the same host name. A host name proves nothing, but a virtual
// machine that was cloned while it ran has the boot id of its twin, and often
// another name. Whatever cannot be read, or is of another machine, proves
// nothing: then the lease decides.
package boot

// Identity is one process as others of its machine can recognise it.
type Identity struct {
	// Machine names the kernel's start, the pid namespace and the host. Empty
	// means that this system offers no proof.
	Machine string
	Process int
	// Start is when the process was started, by a clock of its time namespace,
	// and the name of that namespace.
	Start string
}

// Self is this process.
func Self() Identity { return self() }

// Dead reports whether a process is proven dead.
func Dead(other Identity) bool { return dead(Self(), other) }
