package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl/job"
)

// Kind is the kind of posts.
const Kind = "pawl.webhook"

// Post is an HTTP POST as a job.
type Post struct {
	// URL is http or https, without user and password.
	URL string `json:"url"`
	// Body is JSON. The codec may take blanks out of it; what is sent is what is signed.
	Body json.RawMessage `json:"body,omitempty"`
	// Data is sent instead of Body, byte by byte.
	Data []byte `json:"data,omitempty"`
	// ContentType is application/json, or of Data application/octet-stream, unless
	// it is said.
	ContentType string `json:"content_type,omitempty"`
	// Headers are sent along, at most 32 and 8 KiB. Those that HTTP or the signature
	// needs are refused. They are kept with the job, where operators read them.
	Headers map[string]string `json:"headers,omitempty"`
	// Secret names the secrets that sign: see Config.Secrets.
	Secret string `json:"secret,omitempty"`
}

// Kind is "pawl.webhook".
func (Post) Kind() string { return Kind }

// Check says what is wrong with a post, for whoever takes URLs from people. c is the
// workers' Config as far as it says where posts may go and how large they are: the zero
// one refuses private addresses. Names are not resolved. A post that is enqueued all the
// same ends dead, with this error.
func (p Post) Check(c Config) error {
	c = c.filled()
	if err := errors.Join(c.checkBounds(), c.checkPlaces()); err != nil {
		return err
	}
	return p.check(&c)
}

// check is Check with a configuration that is checked itself.
func (p Post) check(c *Config) error {
	u, err := parseURL(p.URL)
	if err == nil {
		err = c.allowed(u)
	}
	errs := []error{err}
	if body, _ := p.content(); len(body) > c.MaxBody {
		errs = append(errs, tooLarge("webhook body", len(body), c.MaxBody))
	}
	if len(p.Body) > 0 && len(p.Data) > 0 {
		errs = append(errs, job.Invalid("webhook data", fmt.Sprintf("%d bytes", len(p.Data)), "must not be there beside a body"))
	}
	if p.ContentType != "" {
		errs = append(errs, checkHeaderValue("webhook content type", p.ContentType))
	}
	return errors.Join(append(errs, p.checkHeaders())...)
}

func (p Post) checkHeaders() error {
	var errs []error
	if len(p.Headers) > mostHeaders {
		errs = append(errs, job.Invalid("webhook headers", len(p.Headers), fmt.Sprintf("must be at most %d", mostHeaders)))
	}
	size, seen := 0, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		size += len(name) + len(p.Headers[name])
		twice := seen[strings.ToLower(name)]
		seen[strings.ToLower(name)] = true
		switch {
		case twice:
			errs = append(errs, job.Invalid("webhook header", name, "must not be given twice"))
		case !isToken(name):
			errs = append(errs, job.Invalid("webhook header", name, "must be a name of letters, digits and -"))
		case reserved(name):
			errs = append(errs, job.Invalid("webhook header", name, "must not be given: the sender sets it"))
		default:
			errs = append(errs, checkHeaderValue("webhook header "+name, p.Headers[name]))
		}
	}
	if size > mostHeaderBytes {
		errs = append(errs, tooLarge("webhook headers", size, mostHeaderBytes))
	}
	return errors.Join(errs...)
}

func tooLarge(field string, size, most int) error {
	return job.Invalid(field, fmt.Sprintf("%d bytes", size), fmt.Sprintf("must be at most %d bytes", most))
}

// content is what is sent, and its type.
func (p Post) content() (body []byte, kind string) {
	if len(p.Data) > 0 {
		body, kind = p.Data, "application/octet-stream"
	} else {
		body, kind = p.Body, "application/json"
	}
	if p.ContentType != "" {
		kind = p.ContentType
	}
	return body, kind
}

// parseURL reads a URL that a post can go to.
func parseURL(text string) (*url.URL, error) {
	if len(text) > mostURL {
		return nil, tooLarge("webhook url", len(text), mostURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		// The error quotes the text, which may hold a password.
		return nil, job.Invalid("webhook url", fmt.Sprintf("%d bytes", len(text)), "must be a URL")
	}
	return u, checkURL(u)
}

func checkURL(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return job.Invalid("webhook url", u.Scheme+":", "must be http or https")
	case u.User != nil:
		return job.Invalid("webhook url", place(u), "must not have a user: give a header Authorization")
	case host == "" || u.Opaque != "":
		return job.Invalid("webhook url", place(u), "must have a host")
	case !isASCII(host):
		return job.Invalid("webhook url", place(u), "must have its host in ASCII (xn--…)")
	case strings.HasSuffix(u.Host, ":"):
		return job.Invalid("webhook url", place(u), "must not end its host with a colon")
	case u.Port() != "":
		if n, err := strconv.Atoi(u.Port()); err != nil || n < 1 || n > 65535 {
			return job.Invalid("webhook url", place(u), "must have a port of 1..65535")
		}
	}
	return nil
}

// place is what errors show of a URL: a user or a path may be a secret.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host }

// reserved are headers that a post cannot set: the signature's, and those by
// which HTTP tells where a request goes and where it ends.
func reserved(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
		"expect", "http2-settings":
		return true
	}
	return strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "proxy-")
}

// isToken reports whether a text can be the name of a header.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// checkHeaderValue refuses line breaks and other control characters, by which one
// header could become two. The value may be a secret and is not shown.
func checkHeaderValue(field, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return job.Invalid(field, fmt.Sprintf("%d bytes", len(value)), "must not have control characters")
	}
	return nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 0x7e || r <= ' ' })
}
