package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
)

// Locate asks a service where a postcode is.
type Locate struct {
	Postcode string `json:"postcode"`
}

// Kind is "geo.lookup".
func (Locate) Kind() string { return "geo.lookup" }

// Defaults puts it into the queue of that service, each postcode once.
func (Locate) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("geo"), pawl.Unique(), pawl.Attempts(10)}
}

// Place is where that is.
type Place struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

func (s *shop) locate(ctx context.Context, j *pawl.Job[Locate]) (p Place, err error) {
	status, text, err := s.client.ask(ctx, http.MethodGet, s.outside+"/geo/"+j.Args.Postcode)
	switch {
	case err != nil:
		return p, err
	case status == http.StatusTooManyRequests: // the queue cools down, and no attempt is burned
		return p, fmt.Errorf("geo: 429 Too Many Requests: %w", pawl.Throttled(time.Second))
	case status != http.StatusOK:
		return p, fmt.Errorf("geo: %d %s", status, http.StatusText(status))
	}
	return p, json.Unmarshal(text, &p)
}
