package serve

import (
	"net"
	"time"
)

// alive asks the machines of clients that have nothing to say whether they are still
// there, and drops those that do not answer for 30 seconds.
var alive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}
