package serve_test

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/server/serve"
)

// Somebody who watches does not hold up the stop.
func TestU1_StreamsEndWhenTheStopBegins(t *testing.T) {
	s := start(t, func(c *serve.Config) { c.StopTime = time.Hour })
	answer, err := s.client.Get(s.url + "/api/v1/watch?subject=overview")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%q, %v", line, err)
	}
	s.end()
}
