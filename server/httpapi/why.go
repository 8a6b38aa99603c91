package httpapi

import (
	"context"
	"net/http"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// why adds the route that explains many jobs at once.
func (a *api) why() {
	route(a, operation{
		method: http.MethodPost, path: "/why", id: "explain-jobs", tag: "jobs", role: auth.Viewer,
		summary: "Say what keeps jobs from running, those with the same cause together, the largest group first",
	}, a.explainJobs)
}

type whyInput struct {
	Body struct {
		IDs []string `json:"ids" format:"uuid" minItems:"1" maxItems:"1000" nullable:"false" doc:"of jobs; those of none are left out"`
	}
}

// WhyGroup is jobs that the same thing keeps from running.
type WhyGroup struct {
	Why  pawl.Why `json:"why" doc:"with the earliest until and the least ahead of the group"`
	Jobs []string `json:"jobs" nullable:"false" doc:"their ids, in the order asked"`
}

// WhyGroups are all of them.
type WhyGroups struct {
	Groups []WhyGroup `json:"groups" nullable:"false"`
}

func (a *api) explainJobs(ctx context.Context, in *whyInput) (*body[WhyGroups], error) {
	ids := make([]pawl.ID, len(in.Body.IDs))
	for i, text := range in.Body.IDs {
		var err error
		if ids[i], err = job.ParseID(text); err != nil {
			return nil, err
		}
	}
	groups, err := a.e.WhyAll(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := WhyGroups{Groups: make([]WhyGroup, len(groups))}
	for i, g := range groups {
		out.Groups[i] = WhyGroup{Why: g.Why, Jobs: make([]string, len(g.Jobs))}
		for n, id := range g.Jobs {
			out.Groups[i].Jobs[n] = id.String()
		}
	}
	return answer(out), nil
}
