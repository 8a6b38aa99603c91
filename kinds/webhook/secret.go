package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/pawlwork/pawl/job"
)

// Secret is what sender and receiver share. Printed or logged it does not show
// itself; Reveal does.
type Secret struct{ bytes []byte }

// A secret is as long as the specification has it.
const (
	secretPrefix   = "whsec_"
	leastSecret    = 24
	mostSecretSize = 64
)

// NewSecret makes one from 32 random bytes.
func NewSecret() Secret {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return Secret{b}
}

// ParseSecret reads what Reveal wrote, or another implementation of Standard
// Webhooks: whsec_ and base64 of 24 to 64 bytes. The prefix may be missing. The
// error does not show the text.
func ParseSecret(text string) (Secret, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil {
		return Secret{}, job.Invalid("webhook secret", fmt.Sprintf("%d bytes", len(text)), "must be whsec_ and base64")
	}
	if err := within("bytes of a webhook secret", len(b), leastSecret, mostSecretSize); err != nil {
		return Secret{}, err
	}
	return Secret{b}, nil
}

// Reveal is the secret as text, for the receiver and for where it is kept.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.bytes) }

// IsZero reports whether it is none.
func (s Secret) IsZero() bool { return len(s.bytes) == 0 }

func (s Secret) String() string { return secretPrefix + "…" }

// GoString keeps it out of %#v too.
func (s Secret) GoString() string { return s.String() }
