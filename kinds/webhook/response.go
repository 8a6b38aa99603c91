package webhook

import (
	"net/http"
	"strings"
	"time"
)

// Response is what is kept of an answer. That of a post that is done is its job's
// result: pawl.Result[webhook.Response](ctx, e, id).
type Response struct {
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers,omitempty"` // a few: type, location, Retry-After, request id
	Body      string            `json:"body,omitempty"`    // its beginning, see Config.KeepBody; bytes that are no UTF-8 are replaced
	Truncated bool              `json:"truncated,omitempty"`
	Redirects int               `json:"redirects,omitempty"`
	Took      time.Duration     `json:"took"`

	retryAfter time.Duration // as the receiver asked; negative: it did not
}

var keptHeaders = []string{"Content-Type", "Location", "Retry-After", "Request-Id", "X-Request-Id"}

func newResponse(resp *http.Response, body []byte, keep int, broken bool, now time.Time) Response {
	r := Response{Status: resp.StatusCode, Truncated: broken || len(body) > keep}
	r.Body = text(body[:min(len(body), keep)])
	for _, name := range keptHeaders {
		value := resp.Header.Get(name)
		if most := keptValue(name); len(value) > most {
			value = value[:most]
		}
		if value == "" {
			continue
		}
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		r.Headers[name] = text([]byte(value))
	}
	r.retryAfter = retryAfter(resp.Header, now)
	return r
}

// keptValue bounds a header that is kept. One byte more than a URL may have, so
// that a location that is too long is seen to be.
func keptValue(name string) int {
	if name == "Location" {
		return mostURL + 1
	}
	return 256
}

// text is what any codec and any store takes.
func text(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}
