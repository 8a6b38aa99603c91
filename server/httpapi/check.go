package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// longestGrace bounds the grace of a check.
const longestGrace = 30 * 24 * time.Hour

// check adds the route that holds the store against its rules.
func (a *api) check() {
	route(a, operation{
		method: http.MethodPost, path: "/check", id: "check-store", tag: "check", role: auth.Viewer,
		summary: "Hold the store against its rules, some rows at a time; repair needs the role admin",
	}, a.checkStore)
}

type checkInput struct {
	Body struct {
		Repair bool   `json:"repair,omitempty" doc:"mend what can be mended; needs the role admin"`
		Totals bool   `json:"totals,omitempty" doc:"count the jobs of each queue and state, all of them"`
		Grace  string `json:"grace,omitempty" maxLength:"20" doc:"how long a run may stay with a lost worker, 720h at most; without it twice the time after which one is lost"`
		Rows   int64  `json:"rows,omitempty" minimum:"1" maximum:"1000000" default:"100000" doc:"behind how many rows the answer comes; next says where to go on"`
		After  string `json:"after,omitempty" maxLength:"1000" doc:"next of the report before"`
	}
}

// CheckReport is what a check found.
type CheckReport struct {
	Live     int64        `json:"live" doc:"jobs looked at"`
	Archived int64        `json:"archived" doc:"jobs looked at in the archive"`
	Found    int          `json:"found" doc:"faults, also those that are not listed; after a repair those that were left"`
	Faults   []Fault      `json:"faults" nullable:"false" doc:"the first 1000"`
	Totals   []StateCount `json:"totals,omitempty" doc:"where they were asked for"`
	Repaired int          `json:"repaired,omitempty"`
	Repairs  []Repair     `json:"repairs,omitempty" doc:"the first 1000 that became of faults"`
	Next     string       `json:"next,omitempty" doc:"where another check goes on; none: everything was looked at"`
}

// StateCount is how many jobs of a queue are in a state.
type StateCount struct {
	Queue string `json:"queue"`
	State string `json:"state"`
	Jobs  int    `json:"jobs"`
	More  bool   `json:"more,omitempty" doc:"it came to a bound: there may be more"`
}

func stateCountOf(c *pawl.QueueCount) StateCount {
	return StateCount{c.Queue, c.State.String(), c.Jobs, c.More}
}

// Fault is one broken rule.
type Fault struct {
	Rule   string `json:"rule"`
	Job    string `json:"job,omitempty"`
	Table  string `json:"table,omitempty"`
	Detail string `json:"detail,omitempty"`
}

func faultOf(f *pawl.Fault) Fault {
	w := Fault{Rule: f.Rule, Table: f.Table, Detail: f.Detail}
	if f.ID != (pawl.ID{}) {
		w.Job = f.ID.String()
	}
	return w
}

// Repair is what became of a fault.
type Repair struct {
	Fault  Fault  `json:"fault"`
	Answer string `json:"answer" enum:"done,not-needed,busy,impossible"`
	Did    string `json:"did,omitempty" doc:"what was done, or why nothing was"`
}

var repairAnswers = map[pawl.RepairAnswer]string{
	store.RepairDone: "done", store.RepairNotNeeded: "not-needed", store.RepairBusy: "busy", store.RepairImpossible: "impossible",
}

func (a *api) checkStore(ctx context.Context, in *checkInput) (*body[CheckReport], error) {
	if in.Body.Repair && auth.From(ctx).Role < auth.Admin {
		id := auth.From(ctx)
		return nil, newProblem(http.StatusForbidden, "forbidden", "repair needs the role admin, and "+id.Name+" is "+id.Role.String())
	}
	grace, err := readDuration("grace", in.Body.Grace, longestGrace)
	if err != nil {
		return nil, err
	}
	r, err := a.e.Check(ctx, pawl.CheckOptions{
		Repair: in.Body.Repair, Totals: in.Body.Totals, Grace: grace, Rows: in.Body.Rows, After: in.Body.After,
	})
	if err != nil {
		return nil, err
	}
	out := CheckReport{
		Live: r.Live, Archived: r.Archived, Found: r.Found, Faults: make([]Fault, len(r.Faults)), Repaired: r.Repaired, Next: r.Next,
	}
	for i := range r.Faults {
		out.Faults[i] = faultOf(&r.Faults[i])
	}
	for i := range r.Totals {
		out.Totals = append(out.Totals, stateCountOf(&r.Totals[i]))
	}
	for i := range r.Repairs {
		done := &r.Repairs[i]
		out.Repairs = append(out.Repairs, Repair{faultOf(&done.Fault), repairAnswers[done.Answer], done.Did})
	}
	return answer(out), nil
}
