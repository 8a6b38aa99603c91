package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// request is a post that can be sent.
type request struct {
	url       *url.URL
	body      []byte
	kind      string
	headers   map[string]string
	id        string
	timestamp string
	signature string // empty: unsigned
}

// host is what errors name: not the whole URL, since errors are logged and a path
// may be a secret.
func (r *request) host() string { return r.url.Host }

// ready makes a request of a post. What can never be sent is dead; secrets that
// are missing may come with the next deployment.
func (s *sender) ready(ctx context.Context, j *pawl.Job[Post]) (*request, error) {
	p := j.Args
	if err := p.check(&s.cfg); err != nil {
		return nil, pawl.Dead(err)
	}
	u, err := parseURL(p.URL)
	if err != nil {
		return nil, pawl.Dead(err)
	}
	r := &request{url: u, headers: p.Headers, id: j.ID.String()}
	r.body, r.kind = p.content()
	secrets, err := s.secrets(ctx, p.Secret)
	if err != nil {
		return nil, err
	}
	if s.cfg.Limit != "" {
		if err := pawl.Acquire(ctx, s.cfg.Limit, 1); err != nil { // last: a token is for a post that goes out
			return nil, err
		}
	}
	now := s.now()
	r.timestamp = strconv.FormatInt(now.Unix(), 10)
	r.signature = Sign(secrets, r.id, now, r.body)
	return r, nil
}

// secrets are those of a name. None without an error means unsigned.
func (s *sender) secrets(ctx context.Context, name string) ([]Secret, error) {
	list := s.cfg.Secrets[name]
	if len(list) == 0 && s.cfg.SecretsOf != nil {
		var err error
		if list, err = s.cfg.SecretsOf(ctx, name); err != nil {
			return nil, fmt.Errorf("webhook: secrets of %q: %w", name, err)
		}
	}
	if len(list) == 0 && name == "" && s.cfg.AllowUnsigned {
		return nil, nil
	}
	switch {
	case len(list) == 0 && name == "":
		return nil, errors.New("webhook: the post names no secret to sign with: set Post.Secret, or Config.AllowUnsigned")
	case len(list) == 0:
		return nil, fmt.Errorf("webhook: there is no secret %q, as Post.Secret names it: add it to Config.Secrets, or have SecretsOf find it", name)
	}
	return list, checkSecrets(name, list)
}

// allowed looks at what can be seen of a URL before its name is resolved.
func (c *Config) allowed(u *url.URL) error {
	if c.HTTPSOnly && u.Scheme != "https" {
		return job.Invalid("webhook url", u.Scheme+":", "must be https")
	}
	if port := portOf(u); len(c.Ports) > 0 && !slices.Contains(c.Ports, port) {
		return job.Invalid("webhook port", port, fmt.Sprintf("must be one of %v", c.Ports))
	}
	return c.judgeLiteral(u.Hostname())
}

func portOf(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// errSlow is the cause of an attempt that took longer than Config.Timeout.
var errSlow = errors.New("webhook: too slow")

// send posts, and posts again where it is redirected to. The whole of it is
// bounded by the timeout.
func (s *sender) send(ctx context.Context, r *request) (Response, error) {
	within, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, errSlow)
	defer cancel()
	began, at := time.Now(), r.url
	for hops := 0; ; hops++ {
		answer, err := s.post(within, r, at)
		if err != nil {
			return Response{}, s.explain(ctx, within, at, err)
		}
		answer.Took, answer.Redirects = time.Since(began), hops
		if !redirects(answer.Status) || s.cfg.Redirects == 0 {
			return answer, nil
		}
		if hops == s.cfg.Redirects {
			return Response{}, fmt.Errorf("POST to %s: more than %d redirects", r.host(), hops)
		}
		if at, err = s.follow(at, answer.Headers["Location"]); err != nil {
			return Response{}, fmt.Errorf("POST to %s: redirect refused: %w", r.host(), err)
		}
	}
}

// post sends the request to one place and keeps the beginning of the answer.
func (s *sender) post(ctx context.Context, r *request, to *url.URL) (Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(r.body))
	if err != nil {
		return Response{}, err
	}
	req.Header.Set("User-Agent", s.cfg.UserAgent)
	if sameHost(r.url, to) { // they may hold what only the first host should see
		for name, value := range r.headers {
			req.Header.Set(name, value)
		}
	}
	req.Header.Set("Content-Type", r.kind)
	req.Header.Set(HeaderID, r.id)
	req.Header.Set(HeaderTimestamp, r.timestamp)
	if r.signature != "" {
		req.Header.Set(HeaderSignature, r.signature)
	}
	// Not by an http.Client: it would follow redirects as a browser does.
	resp, err := s.http.RoundTrip(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 { // 101: what follows is no body, and a context does not end it
		return newResponse(resp, nil, 0, false, s.now()), nil
	}
	// The status has come and decides. Of the body only as much as comes soon is read:
	// the receiver may send it for ever.
	limit := time.AfterFunc(s.bodyWait, cancel)
	defer limit.Stop()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(s.cfg.KeepBody)+1))
	return newResponse(resp, body, s.cfg.KeepBody, err != nil, s.now()), nil
}

// explain says what happened instead of an answer.
func (s *sender) explain(ctx, within context.Context, at *url.URL, err error) error {
	to := "POST to " + at.Host
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", to, context.Cause(ctx))
	}
	if errors.Is(context.Cause(within), errSlow) {
		return fmt.Errorf("%s: no answer within %v", to, s.cfg.Timeout)
	}
	if wrong, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return fmt.Errorf("%s: TLS: the certificate is not accepted: %w", to, wrong.Err)
	}
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return fmt.Errorf("%s: TLS: the server does not speak it: %w", to, err)
	}
	if _, is := errors.AsType[tls.AlertError](err); is {
		return fmt.Errorf("%s: TLS: %w", to, err)
	}
	return fmt.Errorf("%s: %w", to, err)
}
