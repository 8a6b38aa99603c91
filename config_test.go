package pawl

import "testing"

func TestJ5_TheLastNumberOfARepeatedQueueCounts(t *testing.T) {
	for text, want := range map[string]int{"mail": 10, "mail=4": 4, "mail=4,mail": 4, "mail,mail=4": 4, "mail=4, mail = 8": 8} {
		queues, err := parseQueues(text)
		if err != nil || len(queues) != 1 || queues["mail"].Workers != want {
			t.Errorf("%q: %v, %v; want %d workers", text, queues, err, want)
		}
	}
}
