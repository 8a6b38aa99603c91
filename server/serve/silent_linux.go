package serve

import (
	"net"
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT, which package syscall does not know.
const userTimeout = 18

// dropSilent ends a connection when its client's machine has not confirmed for so long
// what was sent to it. Without that a client that is gone without a word (its cable is
// out, its machine is off) is sent to for a quarter of an hour: small writes find room in
// buffers, and no deadline of a write ends them.
func dropSilent(c net.Conn, after time.Duration) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil { // it is closed
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(after.Milliseconds()))
	})
}
