package auth

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Bounds of a token file.
const (
	MaxFile   = 1 << 20 // bytes
	MaxTokens = 1000    // each request is compared with all of them
	maxLine   = 1000    // bytes
	maxName   = 100     // bytes
	maxSecret = 200     // bytes of what a request may present
)

const (
	secretPrefix = "pawl_" // so that scanners for leaked secrets know one
	hashPrefix   = "sha256:"
	secretBytes  = 32
)

// NewToken makes a random token of 256 bits. Only its hash is kept: whoever loses the
// token needs another.
func NewToken() (token string, hash [sha256.Size]byte) {
	token = secretPrefix + random()
	return token, Hash(token)
}

// Hash is what a token file keeps of a token. It needs no salt and no slow function:
// nobody guesses 256 random bits.
func Hash(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// Token is one line of a token file.
type Token struct {
	Name    string // of who has it, as in the audit log; several may have one name, while one replaces the other
	Role    Role
	Hidden  bool      // payloads are hidden from them
	Expires time.Time // zero: never
	Hash    [sha256.Size]byte
}

// String is the line: name, role, hash, and what is optional.
//
//	ann operator sha256:9f86d081… hide-payloads expires=2027-01-01T00:00:00Z
func (t Token) String() string {
	line := t.Name + " " + t.Role.String() + " " + hashPrefix + hex.EncodeToString(t.Hash[:])
	if t.Hidden {
		line += " hide-payloads"
	}
	if !t.Expires.IsZero() {
		line += " expires=" + t.Expires.UTC().Format(time.RFC3339)
	}
	return line
}

// identity is who has it.
func (t *Token) identity() Identity { return Identity{Name: t.Name, Role: t.Role, Hidden: t.Hidden} }

// expired reports whether its time is over.
func (t *Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// ParseTokens reads a token file: a line for each token; empty lines and those that begin
// with # are left out. All faults are reported at once. Errors repeat no hash, and nothing
// that might be a token.
func ParseTokens(r io.Reader) ([]Token, error) {
	var list []Token
	var faults []error
	seen := map[[sha256.Size]byte]int{}
	lines := bufio.NewScanner(io.LimitReader(r, MaxFile+1))
	lines.Buffer(nil, maxLine)
	size, n := 0, 0
	for lines.Scan() {
		n++
		size += len(lines.Bytes()) + 1
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		t, err := parseToken(line)
		if before := seen[t.Hash]; err == nil && before > 0 {
			err = fmt.Errorf("has the hash of line %d", before)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", n, err))
			if len(faults) == 10 {
				break
			}
			continue
		}
		seen[t.Hash] = n
		list = append(list, t)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		faults = append(faults, fmt.Errorf("line %d: must be at most %d bytes", n+1, maxLine))
	case err != nil:
		faults = append(faults, err)
	}
	if size > MaxFile+1 {
		faults = append(faults, fmt.Errorf("must be at most %d bytes", MaxFile))
	}
	if len(list) > MaxTokens {
		faults = append(faults, fmt.Errorf("%d tokens: must be at most %d", len(list), MaxTokens))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return list, nil
}

func parseToken(line string) (t Token, err error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return t, errors.New("must be a name, a role and a hash (sha256:…)")
	}
	t.Name = fields[0]
	if err := CheckName(t.Name); err != nil {
		return t, err
	}
	if t.Role, err = ParseRole(fields[1]); err != nil {
		return t, errors.New("role: must be one of " + strings.Join(roleNames[Viewer:], ", "))
	}
	text, ok := strings.CutPrefix(fields[2], hashPrefix)
	hash, err := hex.DecodeString(text)
	if !ok || err != nil || len(hash) != sha256.Size {
		return t, fmt.Errorf("hash: must be %s and 64 hexadecimal digits; a token itself does not belong here", hashPrefix)
	}
	t.Hash = [sha256.Size]byte(hash)
	for i, option := range fields[3:] {
		if option == "hide-payloads" {
			t.Hidden = true
			continue
		}
		text, ok := strings.CutPrefix(option, "expires=")
		if t.Expires, err = time.Parse(time.RFC3339, text); !ok || err != nil {
			return t, fmt.Errorf("field %d: must be hide-payloads or expires= and a time such as 2027-01-01T00:00:00Z", i+4)
		}
	}
	return t, nil
}

// CheckName refuses names that a token cannot have.
func CheckName(name string) error {
	fine := name != "" && len(name) <= maxName && !strings.HasPrefix(name, secretPrefix)
	for _, c := range name {
		fine = fine && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._@-", c))
	}
	if !fine {
		return fmt.Errorf("name: must be 1..%d letters, digits and . _ @ -, and not begin with %s", maxName, secretPrefix)
	}
	return nil
}
