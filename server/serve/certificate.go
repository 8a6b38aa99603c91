package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a pair of PEM files. A changed one is read with the next handshake, as
// whoever renews it expects.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	marked [2]time.Time
}

func newCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.read(c.marks()); err != nil {
		return nil, err
	}
	return c, nil
}

// marks are when the files were changed.
func (c *certificate) marks() (marked [2]time.Time) {
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			marked[i] = info.ModTime()
		}
	}
	return marked
}

func (c *certificate) read(marked [2]time.Time) error {
	c.marked = marked
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	c.pair = &pair
	return nil
}

// get is for tls.Config. What cannot be read leaves the pair that there was: half of a
// renewal may have been written.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if marked := c.marks(); marked != c.marked {
		if err := c.read(marked); err != nil {
			c.log.Error("the certificate cannot be read, the one before is used", "error", err)
		}
	}
	return c.pair, nil
}
