package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed static *.html *.css
var embedded embed.FS

// sheets come first in style.css; those of nouns follow by name. Layers, not their order, decide what counts.
var sheets = []string{"tokens.css", "frame.css", "parts.css"}

// asset is a file that never changes under its address.
type asset struct {
	kind         string
	plain, small []byte // small is compressed; nil where that saves nothing
}

// assets are all of them, and the hash of all: one that changes gives each a new address, so that modules may name each other.
type assets struct {
	hash  string
	files map[string]asset
}

// loadAssets compresses what is embedded, once in a process.
var loadAssets = sync.OnceValue(func() *assets {
	a := &assets{files: map[string]asset{}}
	sum := sha256.New()
	add := func(name string, text []byte) {
		sum.Write([]byte(name))
		sum.Write(text)
		a.files[name] = newAsset(name, text)
	}
	add("style.css", styles())
	_ = fs.WalkDir(embedded, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		if err == nil && kinds[path.Ext(name)] != "" {
			add(strings.TrimPrefix(name, "static/"), text)
		}
		return err
	})
	a.hash = hex.EncodeToString(sum.Sum(nil))[:12]
	return a
})

// styles are all sheets in one: one request, however many nouns there are.
func styles() []byte {
	names, _ := fs.Glob(embedded, "*.css")
	slices.SortStableFunc(names, func(x, y string) int { return rank(x) - rank(y) })
	var all bytes.Buffer
	for _, name := range names {
		text, _ := embedded.ReadFile(name)
		all.Write(text)
		all.WriteByte('\n')
	}
	return all.Bytes()
}

func rank(name string) int {
	if i := slices.Index(sheets, name); i >= 0 {
		return i
	}
	return len(sheets)
}

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func newAsset(name string, text []byte) asset {
	a := asset{kind: kinds[path.Ext(name)], plain: text}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(text)
	_ = w.Close()
	if b.Len() < len(text) {
		a.small = b.Bytes()
	}
	return a
}

// static serves them, for a year.
func (a *app) static(w http.ResponseWriter, r *http.Request) {
	file, ok := a.assets.files[r.PathValue("file")]
	if !ok || r.PathValue("hash") != a.assets.hash {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	text := file.plain
	if file.small != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		text = file.small
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // to who has hung up
	}
}
