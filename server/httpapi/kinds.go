package httpapi

import (
	"context"
	"net/http"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// pauses adds the routes that pause and resume kinds, and everything.
func (a *api) pauses() {
	route(a, operation{
		method: http.MethodGet, path: "/pauses", id: "list-pauses", tag: "pauses", role: auth.Viewer,
		summary: "List what is paused: queues, kinds, everything",
	}, a.listPauses)
	for _, v := range []struct {
		name, summary string
		do            func(pawl.KindHandle, context.Context) error
	}{
		{"pause", "Stop claims of a kind in every queue; its running jobs go on", pawl.KindHandle.Pause},
		{"resume", "Allow claims of a kind again", pawl.KindHandle.Resume},
	} {
		route(a, operation{
			method: http.MethodPost, path: "/kinds/{name}/" + v.name, id: v.name + "-kind", tag: "pauses", role: auth.Operator, summary: v.summary,
		}, func(ctx context.Context, in *NamePath) (*body[Paused], error) {
			if err := v.do(a.e.Kind(in.Name), ctx); err != nil {
				return nil, err
			}
			return a.paused(ctx, "kind", in.Name)
		})
	}
	for _, v := range []struct {
		name, summary string
		do            func(context.Context) error
	}{
		{"freeze", "Stop all claims; running jobs go on, and jobs are accepted", a.e.Freeze},
		{"unfreeze", "Allow claims again, but for what is paused by itself", a.e.Unfreeze},
	} {
		route(a, operation{
			method: http.MethodPost, path: "/" + v.name, id: v.name, tag: "pauses", role: auth.Admin, summary: v.summary,
		}, func(ctx context.Context, _ *struct{}) (*body[Paused], error) {
			if err := v.do(ctx); err != nil {
				return nil, err
			}
			return a.paused(ctx, "all", "")
		})
	}
}

// Paused says whether something is paused, and by whom.
type Paused struct {
	Paused bool   `json:"paused"`
	Pause  *Pause `json:"pause,omitempty"`
}

// paused is how it stands after a change.
func (a *api) paused(ctx context.Context, scope, name string) (*body[Paused], error) {
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	for i := range s.Pauses {
		if p := pauseOf(&s.Pauses[i]); p.Scope == scope && p.Name == name {
			return answer(Paused{true, &p}), nil
		}
	}
	return answer(Paused{}), nil
}

// PauseList is one page of pauses.
type PauseList struct {
	Pauses []Pause `json:"pauses" nullable:"false"`
	Next   string  `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

func (a *api) listPauses(ctx context.Context, in *Paging) (*body[PauseList], error) {
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(in, s.Pauses, func(p *pawl.Pause) string { return p.Scope.String() + " " + p.Name })
	if err != nil {
		return nil, err
	}
	return answer(PauseList{wireOf(page, pauseOf), next}), nil
}
