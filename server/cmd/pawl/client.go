package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawlwork/pawl/server/httpapi"
)

// mostAnswer bounds what is read of one answer: a page of 1,000 jobs is far smaller.
const mostAnswer = 64 << 20

// client calls the API, wherever it is.
type client struct {
	base    string // such as http://127.0.0.1:7340
	where   string // for errors
	token   string
	note    string
	timeout time.Duration // of a request that waits for nothing
	http    *http.Client
	closing func() error
}

func (c *client) close() error {
	c.http.CloseIdleConnections()
	if c.closing == nil {
		return nil
	}
	return c.closing()
}

// request is one call. wait is how long it may wait at the server by its own wish.
type request struct {
	method, path string
	query        url.Values
	body         any
	headers      map[string]string
	wait         time.Duration
}

// do sends a request and returns the JSON of its answer. A problem comes back as
// *httpapi.Problem.
func (c *client) do(ctx context.Context, q request) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout+q.wait, errSlow)
	defer cancel()
	r, err := c.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	switch {
	case err != nil:
		return nil, c.failed(ctx, err)
	case len(text) > mostAnswer:
		return nil, fmt.Errorf("%s: an answer of more than %d bytes", c.where, mostAnswer)
	}
	if answer.StatusCode/100 == 2 {
		return bytes.TrimSpace(text), nil
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	p := &httpapi.Problem{}
	if kind != "application/problem+json" || json.Unmarshal(text, p) != nil || p.Status == 0 {
		return nil, unreachable(fmt.Errorf("%s is no Pawl server: it answers %s", c.where, answer.Status))
	}
	if p.Detail == "" {
		p.Detail = p.Title
	}
	return nil, p
}

var errSlow = errors.New("no answer in time")

// prepare makes a request of one.
func (c *client) prepare(ctx context.Context, q request) (*http.Request, error) {
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, usage("%w", err)
		}
		body = bytes.NewReader(text)
	}
	address := c.base + httpapi.Prefix + q.path
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, address, body)
	if err != nil {
		return nil, usage("%w", err)
	}
	r.Header.Set("Accept", "application/json")
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.note != "" {
		r.Header.Set("Pawl-Note", c.note)
	}
	for name, value := range q.headers {
		r.Header.Set(name, value)
	}
	return r, nil
}

// failed says why there was no answer, without the address' query.
func (c *client) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return cause
		}
		return unreachable(fmt.Errorf("%s: %w", c.where, cause))
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return unreachable(fmt.Errorf("%s: %w", c.where, err))
}

// get reads JSON into out, and returns it as it came.
func (c *client) get(ctx context.Context, path string, query url.Values, out any) ([]byte, error) {
	text, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return nil, err
	}
	return text, decode(text, out)
}

func decode(text []byte, out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("an answer that is not understood: %w", err)
	}
	return nil
}

// checkServer reads the address of a server.
func checkServer(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", usage("server: must be an address such as http://127.0.0.1:7340")
	case u.User != nil:
		return "", usage("server: must hold no name or password: the token is read from PAWL_TOKEN or a token file")
	case u.RawQuery != "" || u.Fragment != "":
		return "", usage("server %q: must have no query", text)
	}
	return strings.TrimRight(text, "/"), nil
}
