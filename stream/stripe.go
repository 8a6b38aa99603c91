package stream

import "hash/fnv"

// Stripes is into how many parts a log is divided for the members of groups.
const Stripes = 64

// Stripe is the part that events of a topic and a key are in. It is stored: how it is
// computed never changes.
func Stripe(topic, key string) int16 {
	h := fnv.New64a()
	h.Write([]byte(topic))
	h.Write([]byte{0})
	h.Write([]byte(key))
	sum := h.Sum64()
	return int16((sum ^ sum>>32) % Stripes)
}
