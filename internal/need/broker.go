package need

import "testing"

// Broker is one test's part of a shared Redis or NATS.
type Broker struct {
	Address string // host:port of Redis, URL of NATS
	Prefix  string // letters, digits and _: what the test makes starts with it, and nothing else does
}

// Redis gives the test the shared Redis and a prefix for its keys. Keys are not removed: the server is thrown away.
func Redis(t testing.TB) Broker {
	t.Helper()
	return Broker{Address: address(t, "redis", redisVariable), Prefix: unique(t)}
}

// NATS gives the test the shared NATS server, which has JetStream, and a prefix for its streams, subjects and buckets.
// They are not removed: the server is thrown away.
func NATS(t testing.TB) Broker {
	t.Helper()
	return Broker{Address: address(t, "nats", natsVariable), Prefix: unique(t)}
}
