package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// beatsPerLease is how often a remote worker should beat within its lease.
const beatsPerLease = 4

// work adds the protocol of workers: register, claim, note, beat, finish, leave.
func (a *api) work() {
	route(a, operation{
		method: http.MethodPost, path: "/workers", id: "register-worker", tag: "work", role: auth.Operator, status: http.StatusCreated, hidden: true,
		summary: "Register a worker, which may then claim jobs",
	}, a.registerWorker)
	route(a, operation{
		method: http.MethodPost, path: "/workers/{worker}/claim", id: "claim-jobs", tag: "work", role: auth.Operator, hidden: true,
		keyless: true, // its answer is leased to who heard it: a claim says what it holds instead
		summary: "Lease jobs to a worker, and wait for some; one claim of a worker at a time",
	}, a.claimJobs)
	route(a, operation{
		method: http.MethodPost, path: "/workers/{worker}/beat", id: "beat-worker", tag: "work", role: auth.Operator, keyless: true,
		summary: "Renew the lease of a worker, and hear which runs were asked to stop",
	}, a.beatWorker)
	route(a, operation{
		method: http.MethodPost, path: "/workers/{worker}/notes", id: "note-runs", tag: "work", role: auth.Operator,
		summary: "Keep progress and log lines of runs",
	}, a.noteRuns)
	route(a, operation{
		method: http.MethodPost, path: "/workers/{worker}/finish", id: "finish-runs", tag: "work", role: auth.Operator,
		summary: "Say how runs ended; what becomes of their jobs is decided by the settings of their queues",
	}, a.finishRuns)
	route(a, operation{
		method: http.MethodDelete, path: "/workers/{worker}", id: "leave-worker", tag: "work", role: auth.Operator, status: http.StatusNoContent,
		summary: "Remove a worker; what it holds goes back to waiting",
	}, func(ctx context.Context, in *WorkerPath) (*struct{}, error) {
		return nil, a.e.Remote().Leave(ctx, pawl.WorkerID(in.Worker))
	})
}

// WorkerPath names a worker.
type WorkerPath struct {
	Worker int64 `path:"worker" minimum:"1"`
}

// RemoteWorker is what a worker says of itself.
type RemoteWorker struct {
	Label        string   `json:"label,omitempty" maxLength:"128" doc:"shown to people"`
	Version      string   `json:"version,omitempty" maxLength:"128" doc:"of its build"`
	Host         string   `json:"host,omitempty" maxLength:"128"`
	Queues       []string `json:"queues" minItems:"1" maxItems:"100"`
	Kinds        []string `json:"kinds" minItems:"1" maxItems:"1000" doc:"that it knows"`
	Capabilities []string `json:"capabilities,omitempty" maxItems:"1000"`
	Slots        int      `json:"slots,omitempty" minimum:"1" maximum:"1000" doc:"jobs at once, which bounds its claims; 1 without it"`
	LostAfter    string   `json:"lost_after,omitempty" maxLength:"20" doc:"its lease without a beat, 5s to 1h; 30s without it"`
}

// Registered is the answer to a registration.
type Registered struct {
	Worker    int64  `json:"worker"`
	LostAfter string `json:"lost_after" doc:"the lease"`
	BeatEvery string `json:"beat_every" doc:"how often to beat"`
}

func (a *api) registerWorker(ctx context.Context, in *struct{ Body RemoteWorker }) (*body[Registered], error) {
	b := &in.Body
	lost, err := readDuration("lost_after", b.LostAfter, time.Hour)
	if err != nil {
		return nil, err
	}
	if lost == 0 {
		lost = 30 * time.Second
	}
	id, err := a.e.Remote().Register(ctx, pawl.RemoteWorker{
		Label: b.Label, Version: b.Version, Host: b.Host, Queues: b.Queues, Kinds: b.Kinds, Capabilities: b.Capabilities, Slots: b.Slots, LostAfter: lost,
	})
	if err != nil {
		return nil, err
	}
	return answer(Registered{int64(id), lost.String(), (lost / beatsPerLease).String()}), nil
}

// Run names one run of one job.
type Run struct {
	ID  string `json:"id" format:"uuid"`
	Run int64  `json:"run" minimum:"1"`
}

func (r Run) ref() (pawl.RunRef, error) {
	id, err := job.ParseID(r.ID)
	return pawl.RunRef{ID: id, Run: r.Run}, err
}

func runsOf(refs []pawl.RunRef) []Run {
	list := make([]Run, len(refs))
	for i, r := range refs {
		list[i] = Run{r.ID.String(), r.Run}
	}
	return list
}

type claimInput struct {
	WorkerPath
	Body struct {
		Limit int    `json:"limit" minimum:"1" maximum:"1000" doc:"jobs at most, and never more than slots are free"`
		Held  []Run  `json:"held,omitempty" maxItems:"10000" doc:"runs that the worker works on; what it was given beyond that goes back free of charge"`
		Wait  string `json:"wait,omitempty" maxLength:"20" doc:"for a job to come, 1m at most"`
	}
}

// Claimed is the answer to a claim.
type Claimed struct {
	Jobs  []Job     `json:"jobs" nullable:"false" doc:"leased to the worker"`
	Stale []Run     `json:"stale" nullable:"false" doc:"of held: they are not the worker's own any more"`
	Now   time.Time `json:"now" doc:"the store's clock"`
}

func (a *api) claimJobs(ctx context.Context, in *claimInput) (*body[Claimed], error) {
	wait, err := readDuration("wait", in.Body.Wait, longestWait)
	if err != nil {
		return nil, err
	}
	claim := pawl.RemoteClaim{Worker: pawl.WorkerID(in.Worker), Limit: in.Body.Limit, Wait: wait}
	for _, h := range in.Body.Held {
		ref, err := h.ref()
		if err != nil {
			return nil, err
		}
		claim.Held = append(claim.Held, ref)
	}
	got, err := a.e.Remote().Claim(ctx, claim)
	if err != nil {
		return nil, err
	}
	out := Claimed{Jobs: make([]Job, len(got.Jobs)), Stale: runsOf(got.Stale), Now: got.Now}
	for i := range got.Jobs {
		out.Jobs[i] = jobOf(&got.Jobs[i], true, false)
	}
	return answer(out), nil
}

// Beaten is the answer to a beat.
type Beaten struct {
	Now     time.Time `json:"now"`
	Cancels []Run     `json:"cancels" nullable:"false" doc:"runs that were asked to stop"`
}

func (a *api) beatWorker(ctx context.Context, in *WorkerPath) (*body[Beaten], error) {
	b, err := a.e.Remote().Beat(ctx, pawl.WorkerID(in.Worker))
	if err != nil {
		return nil, err
	}
	return answer(Beaten{b.Now, runsOf(b.Cancels)}), nil
}

// Line is a log line of a run.
type Line struct {
	Level int    `json:"level,omitempty" minimum:"-8" maximum:"12" doc:"-4 debug, 0 info, 4 warning, 8 error"`
	Text  string `json:"text" maxLength:"65536" doc:"cut to 4 KiB"`
}

func linesOf(lines []Line, run int64) (list []pawl.LogLine) {
	for _, l := range lines {
		list = append(list, pawl.LogLine{Time: time.Now(), Run: run, Level: l.Level, Text: l.Text})
	}
	return list
}

// RunNote is what a run says while it goes on.
type RunNote struct {
	Run
	Progress *Progress `json:"progress,omitempty" doc:"done from 0 to total, or any where the total is not known, 0"`
	Logs     []Line    `json:"logs,omitempty" maxItems:"1000" doc:"of a run 10000 are kept"`
}

func (p *Progress) of() *job.Progress {
	if p == nil {
		return nil
	}
	return &job.Progress{Done: p.Done, Total: p.Total, Note: p.Note}
}

// Verdicts are what became of each, in order.
type Verdicts struct {
	Verdicts []string `json:"verdicts" nullable:"false" enum:"applied,stale,locked,already" doc:"applied; stale: not the worker's own any more, nothing changed; locked: try again; already: it was stored before"`
}

var verdictNames = map[job.Verdict]string{job.Applied: "applied", job.Stale: "stale", job.Locked: "locked", job.Already: "already"}

func verdictsOf(list []job.Verdict) Verdicts {
	out := Verdicts{make([]string, len(list))}
	for i, v := range list {
		out.Verdicts[i] = verdictNames[v]
	}
	return out
}

type noteInput struct {
	WorkerPath
	Body struct {
		Notes []RunNote `json:"notes" maxItems:"1000"`
	}
}

func (a *api) noteRuns(ctx context.Context, in *noteInput) (*body[Verdicts], error) {
	var notes []pawl.RemoteNote
	for _, n := range in.Body.Notes {
		ref, err := n.ref()
		if err != nil {
			return nil, err
		}
		notes = append(notes, pawl.RemoteNote{RunRef: ref, Progress: n.Progress.of(), Logs: linesOf(n.Logs, n.Run.Run)})
	}
	verdicts, err := a.e.Remote().Note(ctx, pawl.WorkerID(in.Worker), notes)
	if err != nil {
		return nil, err
	}
	return answer(verdictsOf(verdicts)), nil
}

// RunEnd is how a run ended.
type RunEnd struct {
	Run
	Outcome  string          `json:"outcome" enum:"done,failed,dead,snoozed,throttled,released,cancelled,unreadable"`
	Message  string          `json:"message,omitempty" maxLength:"65536" doc:"of a failure, or why it was put off"`
	Stack    string          `json:"stack,omitempty" maxLength:"65536"`
	Delay    string          `json:"delay,omitempty" maxLength:"20" doc:"of a failure that chooses its time, of a snooze or a throttle"`
	Result   json.RawMessage `json:"result,omitempty" doc:"any JSON value"`
	Progress *Progress       `json:"progress,omitempty"`
	Logs     []Line          `json:"logs,omitempty" maxItems:"1000"`
	Took     string          `json:"took,omitempty" maxLength:"20" doc:"the handler's time"`
	FollowUp []Draft         `json:"follow_ups,omitempty" maxItems:"1000" doc:"of a run that is done: jobs that are enqueued with its end, or not at all; 1000 in a request"`
	Again    bool            `json:"again,omitempty" doc:"it was sent before and the answer was lost"`
}

type finishInput struct {
	WorkerPath
	Body struct {
		Ends []RunEnd `json:"ends" maxItems:"1000"`
	}
}

func (a *api) finishRuns(ctx context.Context, in *finishInput) (*body[Verdicts], error) {
	var ends []pawl.RemoteEnd
	for i, e := range in.Body.Ends {
		ref, err := e.ref()
		if err != nil {
			return nil, err
		}
		end := pawl.RemoteEnd{
			RunRef: ref, Outcome: pawl.RemoteOutcome(e.Outcome), Message: e.Message, Stack: e.Stack, Result: e.Result,
			Progress: e.Progress.of(), Logs: linesOf(e.Logs, e.Run.Run), Again: e.Again,
		}
		if e.Delay != "" {
			delay, err := readDuration(fmt.Sprintf("ends[%d].delay", i), e.Delay, 0)
			if err != nil {
				return nil, err
			}
			end.Delay = &delay
		}
		if end.Took, err = readDuration(fmt.Sprintf("ends[%d].took", i), e.Took, 0); err != nil {
			return nil, err
		}
		for n := range e.FollowUp {
			item, err := e.FollowUp[n].item()
			if err != nil {
				return nil, err
			}
			end.Then = append(end.Then, item)
		}
		ends = append(ends, end)
	}
	verdicts, err := a.e.Remote().Finish(ctx, pawl.WorkerID(in.Worker), ends)
	if err != nil {
		return nil, err
	}
	return answer(verdictsOf(verdicts)), nil
}
