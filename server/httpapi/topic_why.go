package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// topicWhy adds the route that says what readers of events wait for.
func (a *api) topicWhy() {
	route(a, operation{
		method: http.MethodGet, path: "/events/why", id: "explain-events", tag: "topics", role: auth.Viewer,
		summary: "Say why published events cannot be read yet: the open transactions that have published, the one that readers wait for first",
	}, a.explainEvents)
}

// EventHolder is an open transaction that has published events.
type EventHolder struct {
	Text        string    `json:"text" doc:"names it in a sentence"`
	PID         int       `json:"pid,omitempty" doc:"of its process of the database server; none for a prepared transaction"`
	Application string    `json:"application,omitempty" doc:"application_name of its session"`
	User        string    `json:"user,omitempty"`
	State       string    `json:"state,omitempty" doc:"of its session, such as idle in transaction"`
	Prepared    bool      `json:"prepared,omitempty" doc:"it waits for COMMIT PREPARED or ROLLBACK PREPARED"`
	Name        string    `json:"name,omitempty" doc:"of a prepared transaction"`
	Began       time.Time `json:"began,omitzero" doc:"when it began, or was prepared"`
	Query       time.Time `json:"query,omitzero" doc:"when its last statement began"`
}

// EventHolders are those that readers wait for.
type EventHolders struct {
	Holders []EventHolder `json:"holders" nullable:"false" doc:"20 at most; none: all that was published can be read"`
}

func (a *api) explainEvents(ctx context.Context, _ *struct{}) (*body[EventHolders], error) {
	list, err := a.e.WhyBehind(ctx)
	if err != nil {
		return nil, err
	}
	return answer(EventHolders{wireOf(list, func(h *pawl.EventHolder) EventHolder {
		return EventHolder{
			Text: h.String(), PID: h.PID, Application: h.Application, User: h.User, State: h.State,
			Prepared: h.Prepared, Name: h.Name, Began: h.Began, Query: h.Query,
		}
	})}), nil
}
