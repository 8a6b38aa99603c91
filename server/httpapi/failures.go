package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// failures adds the route of failures that are alike.
func (a *api) failures() {
	route(a, operation{
		method: http.MethodGet, path: "/failures", id: "list-failures", tag: "metrics", role: auth.Viewer,
		summary: "Tell which failures are alike, those with the most first; the last minute or two may be missing",
	}, a.listFailures)
}

type failuresInput struct {
	TimeRange
	Kind        string `query:"kind" maxLength:"200" doc:"or a pattern, such as mail.*"`
	Fingerprint string `query:"fingerprint" maxLength:"64"`
	Limit       int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"of those with the most failures"`
}

// FailureGroup is failures that are alike: of one kind, with one fingerprint.
type FailureGroup struct {
	Kind         string    `json:"kind" doc:"(all other) beyond the bound of what a process counts apart"`
	Fingerprint  string    `json:"fingerprint" doc:"as kind"`
	Message      string    `json:"message" doc:"of the last"`
	Failed       uint64    `json:"failed" doc:"attempts, also those after which the job was dead"`
	Dead         uint64    `json:"dead" doc:"jobs that died of it"`
	First        FailedJob `json:"first"`
	Last         FailedJob `json:"last"`
	Versions     []string  `json:"versions" nullable:"false" doc:"of builds, the first few"`
	MoreVersions bool      `json:"more_versions,omitempty"`
	Keys         []string  `json:"keys" nullable:"false" doc:"of jobs, the first few"`
	MoreKeys     bool      `json:"more_keys,omitempty"`
}

// FailedJob is a job that failed, and when.
type FailedJob struct {
	Job  string    `json:"job" format:"uuid"`
	Time time.Time `json:"time"`
}

// FailureGroups are some of them.
type FailureGroups struct {
	From   time.Time      `json:"from"`
	To     time.Time      `json:"to"`
	Groups []FailureGroup `json:"groups" nullable:"false"`
}

func (a *api) listFailures(ctx context.Context, in *failuresInput) (*body[FailureGroups], error) {
	from, to, err := in.of(ctx, a.e)
	if err != nil {
		return nil, err
	}
	groups, err := a.e.FailureGroups(ctx, pawl.FailureQuery{From: from, To: to, Kind: in.Kind, Fingerprint: in.Fingerprint, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := FailureGroups{From: from, To: to, Groups: make([]FailureGroup, len(groups))}
	for i := range groups {
		g := &groups[i]
		out.Groups[i] = FailureGroup{
			Kind: g.Kind, Fingerprint: g.Fingerprint, Message: g.Message, Failed: g.Failed, Dead: g.Dead,
			First: FailedJob{g.First.Job.String(), g.First.Time}, Last: FailedJob{g.Last.Job.String(), g.Last.Time},
			Versions: append([]string{}, g.Versions...), MoreVersions: g.MoreVersions,
			Keys: append([]string{}, g.Keys...), MoreKeys: g.MoreKeys,
		}
	}
	return answer(out), nil
}
