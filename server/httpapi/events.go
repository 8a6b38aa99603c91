package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// The subjects that can be watched.
const (
	overviewSubject = "overview"
	queueSubject    = "queue:"
	jobSubject      = "job:"
)

// Bounds of a stream.
const (
	defaultStreams = 500 // that are open at once
	// Between two things that are sent: a connection notices that nobody is at its other
	// end only by what is sent.
	heartbeat = 5 * time.Second
	writeTime = 10 * time.Second // for one of them: who takes longer is dropped
	// A stream ends after a while, and its reader comes back to where it was. That bounds
	// how long one whose token was revoked is served, and one that is half open where
	// whoever listens has no bound of its own (package serve has).
	streamLife = 10 * time.Minute
)

const eventsText = "Server-sent events. A stream begins with the event reset, whose data is how the subject stands: an Overview, " +
	"a QueueNow or a JobNow. Each event change behind it has what changed: of an overview only the states and queues that did, else all. " +
	"A job that is deleted sends gone, and the stream ends. Comments come every 5 seconds. A stream ends after ten minutes at the latest: " +
	"who comes back with the id of the last event as Last-Event-ID gets what has changed since, or a reset where that is not known any more."

// events adds the route of what is watched.
func (a *api) events() {
	s := &streams{
		most:     int64(a.streams),
		overview: &watches{log: a.log, read: a.lookOverview},
		queues:   &watches{log: a.log, read: a.lookQueues},
		jobs:     &watches{log: a.log, read: a.lookJobs},
	}
	route(a, operation{
		method: http.MethodGet, path: "/watch", id: "watch", tag: "watch", role: auth.Viewer,
		summary: "Watch the overview, a queue or a job",
	}, s.watch)
	a.open = s
	a.describeEvents()
}

// describeEvents says in the document what a stream consists of: as an array, for want of a
// better word in OpenAPI 3.1.
func (a *api) describeEvents() {
	document := a.huma.OpenAPI()
	data := &huma.Schema{Description: "how the subject stands, or what changed; of gone nothing"}
	for _, t := range []reflect.Type{reflect.TypeFor[Overview](), reflect.TypeFor[QueueNow](), reflect.TypeFor[JobNow]()} {
		data.AnyOf = append(data.AnyOf, document.Components.Schemas.Schema(t, true, ""))
	}
	data.AnyOf = append(data.AnyOf, &huma.Schema{Type: huma.TypeObject, Description: "of gone", AdditionalProperties: false})
	one := &huma.Schema{Type: huma.TypeObject, Required: []string{"id", "event", "data"}, Properties: map[string]*huma.Schema{
		"id":    {Type: huma.TypeString, Description: "for Last-Event-ID"},
		"event": {Type: huma.TypeString, Enum: []any{"reset", "change", "gone"}},
		"data":  data,
	}}
	document.Paths[Prefix+"/watch"].Get.Responses["200"] = &huma.Response{
		Description: "a stream of events",
		Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: &huma.Schema{Type: huma.TypeArray, Description: eventsText, Items: one},
		}},
	}
}

// streams are those that are open.
type streams struct {
	open                   atomic.Int64
	most                   int64
	overview, queues, jobs *watches
}

type eventsInput struct {
	Subject string `query:"subject" required:"true" minLength:"1" maxLength:"210" doc:"overview, queue:NAME or job:ID"`
	Last    string `header:"Last-Event-ID" maxLength:"100" doc:"id of the last event that was seen"`
}

// subject finds where a subject is watched. Ids are made the same for all their spellings.
func (s *streams) subject(text string) (*watches, string, error) {
	if name, ok := strings.CutPrefix(text, queueSubject); ok {
		return s.queues, text, job.CheckName("subject: queue", name)
	}
	if name, ok := strings.CutPrefix(text, jobSubject); ok {
		id, err := job.ParseID(name)
		return s.jobs, jobSubject + id.String(), err
	}
	if text == overviewSubject {
		return s.overview, text, nil
	}
	return nil, "", newProblem(http.StatusUnprocessableEntity, "invalid", "subject: must be overview, queue:NAME or job:ID")
}

// watch begins a stream. What is wrong is answered before it begins.
func (s *streams) watch(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	from, subject, err := s.subject(in.Subject)
	if err != nil {
		return nil, err
	}
	if s.open.Add(1) > s.most {
		s.open.Add(-1)
		return nil, newProblem(http.StatusTooManyRequests, "too-many-requests", "there are as many streams open as this server serves: try again later")
	}
	w, err := from.subscribe(ctx, subject)
	if err != nil {
		s.open.Add(-1)
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer s.open.Add(-1)
		defer from.leave(w)
		r, out := humago.Unwrap(ctx)
		if r.Method == http.MethodHead { // nothing is sent to it: it would stay, and nobody would notice that it has gone
			out.Header().Set("Content-Type", "text/event-stream")
			return
		}
		send(r.Context(), out, from, w, readPlace(in.Last))
	}}, nil
}

// send sends what happens, until the reader leaves, is too slow, or its time is over.
func send(ctx context.Context, out http.ResponseWriter, from *watches, w *watch, seen place) {
	control := http.NewResponseController(out)
	_ = control.SetReadDeadline(time.Time{}) // nothing more is read: a bound for requests is none for streams
	h := out.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // of a proxy
	h.Set("Connection", "close")     // its deadlines are not those of another request
	write := func(frames ...[]byte) bool {
		for _, f := range frames {
			_ = control.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := out.Write(f); err != nil {
				return false
			}
		}
		return control.Flush() == nil
	}
	defer func() { _ = control.SetWriteDeadline(time.Now().Add(writeTime)) }() // for the end of the body
	out.WriteHeader(http.StatusOK)
	if !write([]byte("retry: 2000\n\n")) {
		return
	}
	over := time.NewTimer(streamLife)
	defer over.Stop()
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		frames, now, changed, ended := from.next(w, seen)
		if seen = now; len(frames) > 0 && !write(frames...) || ended {
			return
		}
		beat.Reset(heartbeat)
		select {
		case <-changed:
		case <-beat.C:
			if !write([]byte(":\n\n")) {
				return
			}
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
