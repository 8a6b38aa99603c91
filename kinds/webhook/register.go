package webhook

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
)

// Register adds the handler of posts to an engine or to handlers. The faults of a
// configuration come at once, and nothing is registered then.
func Register(to pawl.Registrar, c Config, opts ...pawl.HandleOption) error {
	s, err := newSender(c)
	if err != nil {
		return err
	}
	pawl.HandleResult(to, s.work, opts...)
	return nil
}

// sender sends posts. It is safe for concurrent use.
type sender struct {
	cfg  Config
	http *http.Transport
	now  func() time.Time
	// bodyWait is how long the rest of an answer is read, once its status is known.
	bodyWait time.Duration
}

func newSender(c Config) (*sender, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	s := &sender{cfg: c, now: time.Now, bodyWait: 5 * time.Second}
	s.http = &http.Transport{
		DialContext:            s.cfg.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    c.Timeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small answer must not become a large one
		DisableKeepAlives:      c.Idle < 0,
		IdleConnTimeout:        max(c.Idle, 0),
		MaxIdleConns:           128,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if c.TLS != nil {
		s.http.TLSClientConfig = c.TLS.Clone()
	}
	if c.Proxy != nil {
		s.http.Proxy = http.ProxyURL(c.Proxy)
	}
	return s, nil
}

// work is one attempt.
func (s *sender) work(ctx context.Context, j *pawl.Job[Post]) (Response, error) {
	r, err := s.ready(ctx, j)
	if err != nil {
		return Response{}, err
	}
	answer, err := s.send(ctx, r)
	if err != nil {
		return Response{}, err
	}
	return answer, s.outcome(answer, r.host(), &j.Info)
}
