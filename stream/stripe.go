package stream

// Stripes is into how many parts a log is divided for the members of groups.
const Stripes = 64

// Stripe is the part that events of a topic and a key are in. It is stored: how it is
// computed never changes.
func Stripe(topic, key string) int16 {
	sum := uint64(14695981039346656037) // FNV-1a of 64 bits, which hash/fnv has for bytes only
	for i := range len(topic) {
		sum = (sum ^ uint64(topic[i])) * 1099511628211
	}
	sum *= 1099511628211 // a byte 0 between them
	for i := range len(key) {
		sum = (sum ^ uint64(key[i])) * 1099511628211
	}
	return int16((sum ^ sum>>32) % Stripes)
}
