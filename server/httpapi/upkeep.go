package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// upkeep adds the routes of the rounds of upkeep.
func (a *api) upkeep() {
	route(a, operation{
		method: http.MethodGet, path: "/upkeep", id: "list-upkeep", tag: "upkeep", role: auth.Viewer,
		summary: "List the rounds of upkeep, and how often operators want them done",
	}, a.listUpkeep)
	route(a, operation{
		method: http.MethodGet, path: "/upkeep/{round}", id: "get-upkeep", tag: "upkeep", role: auth.Viewer,
		summary: "Read how often operators want a round of upkeep done",
	}, a.getUpkeep)
	route(a, operation{
		method: http.MethodPost, path: "/upkeep/{round}", id: "run-upkeep", tag: "upkeep", role: auth.Admin,
		summary: "Run a round of upkeep now; every process that runs does them by itself",
	}, a.runUpkeep)
	route(a, operation{
		method: http.MethodPut, path: "/upkeep/{round}", id: "set-upkeep", tag: "upkeep", role: auth.Admin,
		summary: "Set how often a round of upkeep is done, in the whole cluster",
	}, a.setUpkeep)
}

// rounds are those of the enum of RoundPath.
var rounds = []string{"rescue", "expire", "intents", "operations", "purge", "rollup", "unserved", "gates"}

// RoundPath names a round of upkeep.
type RoundPath struct {
	Round string `path:"round" enum:"rescue,expire,intents,operations,purge,rollup,unserved,gates"`
}

// Upkeep is how often a round of upkeep is done.
type Upkeep struct {
	Round string    `json:"round"`
	Every string    `json:"every,omitempty" doc:"as operators have set it; the default holds without it"`
	By    string    `json:"by,omitempty" doc:"who"`
	Note  string    `json:"note,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

func upkeepOf(u *pawl.EffectiveUpkeep) Upkeep {
	return Upkeep{u.Round, settingTime(u.Every), u.By, u.Note, u.Since}
}

// UpkeepList is all rounds.
type UpkeepList struct {
	Rounds []Upkeep `json:"rounds" nullable:"false"`
}

// allUpkeep are the rounds, in their order.
func (a *api) allUpkeep(ctx context.Context) ([]Upkeep, error) {
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return wireOf(rounds, func(round *string) Upkeep {
		for i := range s.Upkeep {
			if s.Upkeep[i].Round == *round {
				return upkeepOf(&s.Upkeep[i])
			}
		}
		return Upkeep{Round: *round}
	}), nil
}

func (a *api) listUpkeep(ctx context.Context, _ *struct{}) (*body[UpkeepList], error) {
	all, err := a.allUpkeep(ctx)
	return answer(UpkeepList{all}), err
}

func (a *api) getUpkeep(ctx context.Context, in *RoundPath) (*body[Upkeep], error) {
	all, err := a.allUpkeep(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if u.Round == in.Round {
			return answer(u), nil
		}
	}
	return nil, job.NotFound("round of upkeep", in.Round)
}

// UpkeepReport is what a round did.
type UpkeepReport struct {
	Round string      `json:"round"`
	Did   []UpkeepDid `json:"did" nullable:"false" doc:"empty when there was nothing to do"`
	More  bool        `json:"more,omitempty" doc:"it came to its bound, or had to leave something for later"`
	Took  string      `json:"took"`
}

// UpkeepDid is one thing that a round did, so often.
type UpkeepDid struct {
	What string `json:"what"`
	N    int    `json:"n"`
}

func (a *api) runUpkeep(ctx context.Context, in *RoundPath) (*body[UpkeepReport], error) {
	r, err := a.e.Upkeep(ctx, in.Round)
	if err != nil {
		return nil, err
	}
	out := UpkeepReport{Round: in.Round, Did: make([]UpkeepDid, len(r.Did)), More: r.More, Took: r.Took.String()}
	for i, d := range r.Did {
		out.Did[i] = UpkeepDid{d.What, d.N}
	}
	return answer(out), nil
}

type setUpkeepInput struct {
	RoundPath
	Body struct {
		Every string `json:"every" minLength:"1" maxLength:"32" doc:"100ms to 24h, or default"`
	}
}

func (a *api) setUpkeep(ctx context.Context, in *setUpkeepInput) (*body[Upkeep], error) {
	var every time.Duration
	if in.Body.Every != "default" {
		var err error
		if every, err = time.ParseDuration(in.Body.Every); err != nil || every <= 0 {
			return nil, job.Invalid("every", in.Body.Every, "must be 100ms to 24h, or default")
		}
	}
	if err := a.e.SetUpkeep(ctx, in.Round, every); err != nil {
		return nil, err
	}
	return a.getUpkeep(ctx, &in.RoundPath)
}
