package stream_test

import (
	"hash/fnv"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/stream"
)

// Stripes are stored: members of groups would read others' events if they ever changed.
func TestE8_StripesNeverChange(t *testing.T) {
	for _, known := range []struct {
		topic, key string
		stripe     int16
	}{{"orders", "", 59}, {"orders", "order-7", 14}, {"a.b.c", "ключ", 39}, {"", "", 19}} {
		if got := stream.Stripe(known.topic, known.key); got != known.stripe {
			t.Errorf("%q, %q is in stripe %d, was in %d", known.topic, known.key, got, known.stripe)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		topic, key := rapid.String().Draw(t, "topic"), rapid.String().Draw(t, "key")
		h := fnv.New64a()
		h.Write([]byte(topic + "\x00" + key))
		sum := h.Sum64()
		if got, want := stream.Stripe(topic, key), int16((sum^sum>>32)%stream.Stripes); got != want {
			t.Fatalf("stripe %d, want %d", got, want)
		}
	})
}
