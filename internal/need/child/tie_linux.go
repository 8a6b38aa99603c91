package child

import "syscall"

// tie asks the kernel for sig at the end of the starting thread. The runtime sets it after the change of user, which
// would clear it, and checks afterwards that the parent still lives.
func tie(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
