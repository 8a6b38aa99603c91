package pawl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Remote lets workers take part that are not this process: programs in any language,
// behind a server. To the store each is a worker like any other, with a lease that its
// beats renew. Outcomes are decided here, by the settings of queues, so that a
// worker only says what happened.
//
//	Register --> Claim --> (Note, Beat) --> Finish --> Claim ... --> Leave
//
// Nothing is kept here that the store does not know: a worker goes on beside another
// process, and after a restart of this one.
type Remote struct{ e *Engine }

// Remote is for workers outside of this process. The engine need not run.
func (e *Engine) Remote() Remote { return Remote{e} }

// RunRef names one run of one job.
type RunRef = store.RunRef

// RemoteWorker is what a worker says of itself. Zero fields take the default in brackets.
type RemoteWorker struct {
	Label        string   // shown to people
	Version      string   // of its build
	Host         string   // where it runs
	Queues       []string // names; no patterns
	Kinds        []string // that it knows
	Capabilities []string
	Slots        int           // jobs at once: what it holds and what a claim gives are never more [1]
	LostAfter    time.Duration // without a beat [30 s]
}

// Bounds of a remote worker.
const (
	maxRemoteQueues = 100
	maxRemoteKinds  = 1000
	maxRemoteSlots  = 1000
	minRemoteLost   = 5 * time.Second
	maxRemoteLost   = time.Hour
	maxRemoteEnds   = 1000
	maxRemoteDelay  = 10 * 365 * 24 * time.Hour
)

// remoteOwner is whose code remote workers run, to the registry. They declare nothing.
const remoteOwner = "remote"

func (w *RemoteWorker) check() error {
	w.Slots = cmp.Or(w.Slots, 1)
	w.LostAfter = cmp.Or(w.LostAfter, 30*time.Second)
	switch {
	case len(w.Queues) == 0 || len(w.Queues) > maxRemoteQueues:
		return job.Invalid("queues", len(w.Queues), fmt.Sprintf("must be 1 to %d", maxRemoteQueues))
	case len(w.Kinds) == 0 || len(w.Kinds) > maxRemoteKinds:
		return job.Invalid("kinds", len(w.Kinds), fmt.Sprintf("must be 1 to %d", maxRemoteKinds))
	case len(w.Capabilities) > maxRemoteKinds:
		return job.Invalid("capabilities", len(w.Capabilities), fmt.Sprintf("must be at most %d", maxRemoteKinds))
	case w.Slots < 1 || w.Slots > maxRemoteSlots:
		return job.Invalid("slots", w.Slots, fmt.Sprintf("must be 1 to %d", maxRemoteSlots))
	case w.LostAfter < minRemoteLost || w.LostAfter > maxRemoteLost:
		return job.Invalid("lost after", w.LostAfter, fmt.Sprintf("must be %v to %v", minRemoteLost, maxRemoteLost))
	}
	for field, names := range map[string][]string{"queue": w.Queues, "kind": w.Kinds, "capability": w.Capabilities} {
		for _, name := range names {
			if err := job.CheckName(field, name); err != nil {
				return err
			}
		}
	}
	w.Label, w.Version, w.Host = legible(w.Label, maxOperator), legible(w.Version, maxOperator), legible(w.Host, maxOperator)
	w.Label = cmp.Or(w.Label, "remote")
	return nil
}

// Register enters a worker and numbers it.
func (r Remote) Register(ctx context.Context, w RemoteWorker) (WorkerID, error) {
	if err := r.e.usable(ctx); err != nil {
		return 0, err
	}
	if err := w.check(); err != nil {
		return 0, err
	}
	slots := slices.Repeat([]int{w.Slots}, len(w.Queues))
	entry := store.Worker{
		Label: w.Label, Host: w.Host, Version: w.Version, Remote: true, Queues: w.Queues, Slots: slots, LostAfter: w.LostAfter,
		Offer: job.Offer{Kinds: map[string]int{}, Capabilities: w.Capabilities},
	}
	for _, kind := range w.Kinds {
		entry.Offer.Kinds[kind] = 0
	}
	if w.Version != "" {
		entry.Owner = remoteOwner
	}
	id, err := r.e.store.Register(ctx, entry)
	if err == nil {
		r.e.remotes.keep(id, &entry)
	}
	return id, err
}

// RemoteBeat is the answer to a beat.
type RemoteBeat struct {
	Now     time.Time
	Cancels []RunRef // runs that were asked to stop
}

// Beat renews the lease of a worker. It is ErrWorkerLost when it was declared lost: then
// none of its runs is its own, and it has to register anew.
func (r Remote) Beat(ctx context.Context, w WorkerID) (RemoteBeat, error) {
	if err := r.e.usable(ctx); err != nil {
		return RemoteBeat{}, err
	}
	if _, err := r.entry(ctx, w); err != nil {
		return RemoteBeat{}, err
	}
	b, err := r.e.store.Beat(ctx, store.Beat{Worker: w})
	return RemoteBeat{Now: b.Now, Cancels: b.Cancels}, r.lost(w, err)
}

// Leave removes a worker. What it still holds goes back to waiting.
func (r Remote) Leave(ctx context.Context, w WorkerID) error {
	if err := r.e.usable(ctx); err != nil {
		return err
	}
	if _, err := r.entry(ctx, w); err != nil {
		return err
	}
	if _, err := r.e.store.ReportRuns(ctx, w, nil); err != nil {
		return err
	}
	r.e.remotes.drop(w)
	return r.e.store.Deregister(ctx, w)
}

// remotes remembers what remote workers said of themselves, and the gates of what they
// ended: it saves reading the registry, and is never needed.
type remotes struct {
	mu    sync.Mutex
	known map[WorkerID]*remote
}

type remote struct {
	entry  *store.Worker
	opened []int64
	seq    int64          // of its last claim by this process
	lines  map[RunRef]int // that its runs have logged through this process
}

// maxRemotes bounds the memory of a server.
const maxRemotes = 10_000

func (rs *remotes) keep(id WorkerID, entry *store.Worker) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.known == nil || len(rs.known) >= maxRemotes {
		rs.known = map[WorkerID]*remote{}
	}
	rs.known[id] = &remote{entry: entry, lines: map[RunRef]int{}}
}

func (rs *remotes) drop(id WorkerID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.known, id)
}

// open notes gates that may have room.
func (rs *remotes) open(id WorkerID, gates []int64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if w := rs.known[id]; w != nil && len(w.opened)+len(gates) <= maxRemoteEnds {
		w.opened = append(w.opened, gates...)
	}
}

// claim is the number of the next claim of a worker, and the gates that it opens. Numbers
// ascend over restarts and processes: they are of the time.
func (rs *remotes) claim(id WorkerID, now time.Time) (seq int64, opened []int64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	w := rs.known[id]
	if w == nil {
		return now.UnixMicro(), nil
	}
	w.seq = max(now.UnixMicro(), w.seq+1)
	opened, w.opened = w.opened, nil
	return w.seq, opened
}

// entry is what a worker said when it registered. One that is a process with an engine of its own is not
// answered for by others: a claim that knows nothing of its runs would give them back while they go on.
func (r Remote) entry(ctx context.Context, id WorkerID) (*store.Worker, error) {
	rs := &r.e.remotes
	rs.mu.Lock()
	w := rs.known[id]
	rs.mu.Unlock()
	if w != nil {
		return w.entry, nil
	}
	list, err := r.e.store.Registry(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].ID != id || list[i].Lost {
			continue
		}
		if !list[i].Worker.Remote {
			return nil, job.Invalid("worker", id, "is a process with an engine of its own, and not remote")
		}
		rs.keep(id, &list[i].Worker)
		return &list[i].Worker, nil
	}
	return nil, fmt.Errorf("worker %d: %w", id, job.ErrWorkerLost)
}
