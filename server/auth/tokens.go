package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Tokens is a token file. It is looked at with each request and read again when it has
// changed, so a token that was taken out works no longer, at once. A file that cannot be
// read any more lets nobody in: who was taken out of it cannot be told.
type Tokens struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	known  fileMark
	list   []Token
	broken string // why nobody is let in, as it was logged
}

// fileMark is by what a changed file is known.
type fileMark struct {
	file  os.FileInfo
	young bool // it had changed just before it was read: the same mark may be another content
}

// unsettled is how long a file that was changed may be changed again with the same time.
const unsettled = 2 * time.Second

// OpenTokens reads a token file. It is refused when others may read it, or the group
// write, when it is too large, or when a line has a fault.
func OpenTokens(path string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{path: path, log: log}
	if err := t.read(); err != nil {
		return nil, err
	}
	if len(t.list) == 0 {
		log.Warn("the token file has no tokens: nobody is let in", "file", path)
	}
	return t, nil
}

// read reads the file, whatever is known.
func (t *Tokens) read() error {
	f, err := os.Open(t.path)
	if err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat() // of what is read, not of what the path may lead to by then
	if err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	if err := checkFile(info); err != nil {
		return fmt.Errorf("token file %s: %w", t.path, err)
	}
	list, err := ParseTokens(f)
	if err != nil {
		return fmt.Errorf("token file %s: %w", t.path, err)
	}
	t.list, t.known = list, fileMark{file: info, young: time.Since(info.ModTime()) < unsettled}
	return nil
}

// checkFile refuses what is no file of ours. A group may read it, as Kubernetes mounts a
// secret.
func checkFile(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return fmt.Errorf("is no regular file")
	case info.Size() > MaxFile:
		return fmt.Errorf("%d bytes: must be at most %d", info.Size(), MaxFile)
	case runtime.GOOS != "windows" && mode.Perm()&0o027 != 0:
		return fmt.Errorf("has mode %04o: others may have no rights to it, and the group may not write it (chmod 600)", mode.Perm())
	}
	return nil
}

// current is what the file has now; nil when it cannot be read.
func (t *Tokens) current() []Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, err := os.Stat(t.path)
	if err == nil && t.broken == "" && !t.known.young && t.known.same(info) {
		return t.list
	}
	if err == nil {
		err = t.read()
	}
	switch {
	case err == nil && t.broken != "":
		t.log.Info("the token file can be read again", "file", t.path)
		t.broken = ""
	case err != nil && t.broken != err.Error():
		t.log.Error("the token file cannot be read: nobody is let in", "error", err)
		t.broken = err.Error()
	}
	if err != nil {
		return nil
	}
	return t.list
}

func (m fileMark) same(now os.FileInfo) bool {
	return os.SameFile(m.file, now) && m.file.ModTime().Equal(now.ModTime()) && m.file.Size() == now.Size() && m.file.Mode() == now.Mode()
}

// find is the token with a hash. All are compared, in constant time each, so that the
// time of an answer tells nothing.
func (t *Tokens) find(hash [sha256.Size]byte) (found Token, err error) {
	err = ErrBadToken
	for _, token := range t.current() {
		if subtle.ConstantTimeCompare(token.Hash[:], hash[:]) == 1 {
			found, err = token, nil
		}
	}
	if err == nil && found.expired(time.Now()) {
		return Token{}, ErrBadToken
	}
	return found, err
}

// Find is who has a token.
func (t *Tokens) Find(token string) (Token, error) {
	if token == "" || len(token) > maxSecret {
		return Token{}, ErrBadToken
	}
	return t.find(Hash(token))
}

// Identify goes by "Authorization: Bearer".
func (t *Tokens) Identify(r *http.Request) (Identity, error) {
	token, err := bearer(r)
	if err != nil {
		return Identity{}, err
	}
	found, err := t.Find(token)
	if err != nil {
		return Identity{}, err
	}
	return found.identity(), nil
}

// bearer is the token of a request.
func bearer(r *http.Request) (string, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return "", ErrNoToken
	}
	scheme, token, ok := strings.Cut(given[0], " ")
	if len(given) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", ErrBadToken
	}
	return strings.TrimSpace(token), nil
}
