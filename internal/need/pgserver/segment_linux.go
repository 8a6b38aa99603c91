package pgserver

import "syscall"

// removeSegment removes System V shared memory; what is gone already is fine.
func removeSegment(id int) {
	const remove = 0 // IPC_RMID
	_, _, _ = syscall.Syscall(syscall.SYS_SHMCTL, uintptr(id), remove, 0)
}
