package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed post, as the Standard Webhooks specification names them.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Errors of Verify. Test with errors.Is; answer such a request with 401.
var (
	// ErrSignature: no signature is that of a secret, or a header is missing or malformed.
	ErrSignature = errors.New("webhook: signature does not match")
	// ErrTimestamp: the request is older than the tolerance, or from the future.
	ErrTimestamp = errors.New("webhook: timestamp is out of tolerance")
)

// Bounds of what Verify reads, so that a stranger's headers cost little.
const (
	defaultTolerance = 5 * time.Minute
	mostSignatures   = 16
	mostID           = 256
)

// Sign is the value of HeaderSignature: a signature for each secret. Posts are
// signed by themselves; this is for tests of a receiver.
func Sign(secrets []Secret, id string, at time.Time, body []byte) string {
	var b strings.Builder
	for i, s := range secrets {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("v1,")
		b.WriteString(base64.StdEncoding.EncodeToString(s.mac(id, strconv.FormatInt(at.Unix(), 10), body)))
	}
	return b.String()
}

// mac covers all three parts. Neither id nor timestamp has a full stop, so that
// no other three parts give the same text.
func (s Secret) mac(id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, s.bytes)
	h.Write([]byte(id))
	h.Write([]byte{'.'})
	h.Write([]byte(timestamp))
	h.Write([]byte{'.'})
	h.Write(body)
	return h.Sum(nil)
}

// Verify is for receivers: it reports whether a request was signed with one of
// the secrets, for exactly this body, and at most a tolerance [5 min] before or
// after now. The body is the bytes as they were received, not JSON that was read
// and written again. Comparing takes the same time whatever the signature is.
//
// A request that was valid stays so within the tolerance: remember HeaderID
// to take a post once, because a sender repeats it when your answer is lost.
func Verify(secrets []Secret, header http.Header, body []byte, tolerance time.Duration, now time.Time) error {
	id, err := only(header, HeaderID)
	if err != nil {
		return err
	}
	timestamp, err := only(header, HeaderTimestamp)
	if err != nil {
		return err
	}
	signatures, err := only(header, HeaderSignature)
	if err != nil {
		return err
	}
	if len(id) > mostID || strings.ContainsRune(id, '.') {
		return fmt.Errorf("%w: %s is malformed", ErrSignature, HeaderID)
	}
	sent, err := parseTimestamp(timestamp)
	if err != nil {
		return err
	}
	if !signed(secrets, id, timestamp, body, signatures) {
		return ErrSignature
	}
	if tolerance <= 0 {
		tolerance = defaultTolerance
	}
	if age := now.Sub(sent); age > tolerance || age < -tolerance {
		return fmt.Errorf("%w: sent %v, %v allowed", ErrTimestamp, sent.UTC().Format(time.RFC3339), tolerance)
	}
	return nil
}

// signed compares each signature with each secret's and never stops early.
func signed(secrets []Secret, id, timestamp string, body []byte, signatures string) bool {
	var wanted [][]byte
	for _, s := range secrets {
		if !s.IsZero() { // an empty one would be a secret that everybody has
			wanted = append(wanted, s.mac(id, timestamp, body))
		}
	}
	found, seen := false, 0
	for signature := range strings.SplitSeq(signatures, " ") {
		if seen++; seen > mostSignatures {
			break
		}
		text, ok := strings.CutPrefix(signature, "v1,")
		if !ok {
			continue // of a version that we do not know
		}
		given, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue
		}
		for _, w := range wanted {
			if hmac.Equal(given, w) {
				found = true
			}
		}
	}
	return found
}

// only is the value of a header that is there once: of two, who knows which one
// the next reader takes.
func only(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", fmt.Errorf("%w: %s is there %d times", ErrSignature, name, len(values))
	}
	return values[0], nil
}

// parseTimestamp takes digits only: no sign, so that there is one way to write it.
func parseTimestamp(text string) (time.Time, error) {
	seconds, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > 12 || text[0] == '+' {
		return time.Time{}, fmt.Errorf("%w: %s is malformed", ErrSignature, HeaderTimestamp)
	}
	return time.Unix(int64(seconds), 0), nil
}
