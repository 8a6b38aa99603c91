package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/stream"
)

// Problem is an error as it is answered (RFC 9457). Kind is stable: programs go by it.
type Problem struct {
	Type   string `json:"type" doc:"always about:blank: kind tells problems apart"`
	Status int    `json:"status" doc:"the HTTP status"`
	Title  string `json:"title" doc:"the status in words"`
	Kind   string `json:"kind" doc:"what is wrong, for programs"`
	Detail string `json:"detail,omitempty" doc:"what is wrong, for people: field, value and bound where there are such"`

	retry time.Duration // after which it may go better, where that is known
}

// TransformSchema names the kinds in the document.
func (p *Problem) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	for _, name := range kindNames() {
		s.Properties["kind"].Enum = append(s.Properties["kind"].Enum, name)
	}
	return s
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus is for huma.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders is for huma.
func (p *Problem) GetHeaders() http.Header {
	if p.retry <= 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.FormatInt(int64(math.Ceil(p.retry.Seconds())), 10)}}
}

// ContentType is for huma.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// kinds is the table: what an error of the engine is over HTTP. The first that matches
// counts.
var kinds = []struct {
	err    error
	status int
	kind   string
}{
	{pawl.ErrNotFound, http.StatusNotFound, "not-found"},
	{pawl.ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
	{errKeyReused, http.StatusUnprocessableEntity, "key-reused"},
	{pawl.ErrNotDone, http.StatusConflict, "not-done"},
	{pawl.ErrNoResult, http.StatusNotFound, "no-result"},
	{pawl.ErrMore, http.StatusConflict, "more"},
	{pawl.ErrInUse, http.StatusConflict, "in-use"},
	{pawl.ErrLeaseLost, http.StatusConflict, "lease-lost"},
	{pawl.ErrPosition, http.StatusConflict, "position-unknown"},
	{stream.ErrVersion, http.StatusConflict, "version-conflict"},
	{pawl.ErrCursorHeld, http.StatusConflict, "cursor-held"},
	{pawl.ErrCursorLost, http.StatusConflict, "cursor-lost"},
	{pawl.ErrCursorFilter, http.StatusConflict, "cursor-filter"},
	{pawl.ErrWorkerLost, http.StatusConflict, "worker-lost"},
	{pawl.ErrRateLimited, http.StatusTooManyRequests, "rate-limited"},
	{pawl.ErrOutcomeUnknown, http.StatusServiceUnavailable, "outcome-unknown"},
	{pawl.ErrBusy, http.StatusServiceUnavailable, "busy"},
	{pawl.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{pawl.ErrClosed, http.StatusServiceUnavailable, "closed"},
	{pawl.ErrNotReady, http.StatusServiceUnavailable, "not-ready"},
	{pawl.ErrReadOnly, http.StatusServiceUnavailable, "read-only"},
	{pawl.ErrFull, http.StatusInsufficientStorage, "full"},
	{errors.ErrUnsupported, http.StatusNotImplemented, "unsupported"},
	{pawl.ErrCorrupt, http.StatusInternalServerError, "corrupt"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout"},
	{context.Canceled, statusGone, "cancelled"},
}

// statusGone is for a caller who has hung up: nobody reads it.
const statusGone = 499

// byStatus names the problems that do not come from the engine.
var byStatus = map[int]string{
	http.StatusBadRequest: "bad-request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "not-found", http.StatusMethodNotAllowed: "method-not-allowed", http.StatusNotAcceptable: "not-acceptable",
	http.StatusRequestTimeout: "timeout", http.StatusConflict: "conflict", http.StatusRequestEntityTooLarge: "too-large",
	http.StatusUnsupportedMediaType: "unsupported-media-type", http.StatusUnprocessableEntity: "invalid",
	http.StatusTooManyRequests: "too-many-requests",
}

// kindNames are all kinds that there are, each once.
func kindNames() (names []string) {
	seen := map[string]bool{"internal": true}
	names = append(names, "internal")
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, k := range kinds {
		add(k.kind)
	}
	for _, status := range []int{400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 422, 429} {
		add(byStatus[status])
	}
	return names
}

func newProblem(status int, kind, detail string) *Problem {
	title := http.StatusText(status)
	if title == "" {
		title = "Client Closed Request"
	}
	return &Problem{Type: "about:blank", Status: status, Title: title, Kind: kind, Detail: detail}
}

// problemOf is what an error of the engine is answered as. What is not in the table is a
// fault of ours: its text is for the log.
func (a *api) problemOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && errors.Is(cause, pawl.ErrClosed) {
		err = cause // the server stops: the caller has not hung up
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return newProblem(k.status, k.kind, err.Error())
		}
	}
	a.log.ErrorContext(ctx, "a request failed", "error", err)
	return newProblem(http.StatusInternalServerError, "internal", "the server failed; its log says why")
}

// asProblem turns the errors that huma makes of requests into problems.
func asProblem(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	kind := byStatus[m.Status]
	if kind == "" {
		kind = "internal"
	}
	var details []string
	for _, d := range m.Errors {
		if strings.Contains(d.Message, "RFC 4122 uuid") {
			details = append(details, fmt.Sprintf("%s %.100q is no UUID", idName(ctx, d.Location), fmt.Sprint(d.Value)))
			continue
		}
		text := d.Message
		if d.Location != "" {
			text = fmt.Sprintf("%s: %s", d.Location, d.Message)
		}
		if d.Value != nil {
			text += fmt.Sprintf(" (is %.100q)", fmt.Sprint(d.Value))
		}
		details = append(details, text)
	}
	if len(details) == 0 {
		details = append(details, m.Detail)
	}
	return newProblem(m.Status, kind, strings.Join(details, "; ")), nil
}

// idName says whose id is meant: that of a path is of the noun before it.
func idName(ctx huma.Context, location string) string {
	switch path := ctx.Operation().Path; {
	case location != "path.id":
		return location
	case strings.HasPrefix(path, Prefix+"/operations/"):
		return "operation id"
	case strings.HasPrefix(path, Prefix+"/jobs/"):
		return "job id"
	}
	return "id"
}
