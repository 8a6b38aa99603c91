package sqlite_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net/rpc"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/stream"
)

// The wire between the two processes: a method's name, its arguments after the
// context, and its answer. Errors keep their meaning.

type Opening struct {
	Path, Namespace string
	MaxLost         int
	Keep            map[string]job.Keep
}

type Request struct {
	Store  int
	Method string
	Args   [][]byte
}

type Answer struct {
	Value   []byte
	Failed  string
	Meaning int // place in meanings, from 1
}

var meanings = []error{
	job.ErrWorkerLost, job.ErrNotFound, job.ErrInvalid, job.ErrOutcomeUnknown, store.ErrClosed, store.ErrBusy, context.Canceled,
	store.ErrCursorLost, store.ErrCursorHeld, store.ErrCursorFilter, store.ErrPosition,
}

// Remote serves the stores of the second process.
type Remote struct {
	mu     sync.Mutex
	stores []store.Store
}

// Open opens a store and gives its number.
func (r *Remote) Open(o Opening, number *int) error {
	settings := store.Settings{Namespace: o.Namespace, MaxLost: o.MaxLost}
	if len(o.Keep) > 0 {
		settings.Keep = func(queue string) job.Keep {
			if k, ok := o.Keep[queue]; ok {
				return k
			}
			return o.Keep[queue[:1]] // programs number their queues: a7, b7, c7
		}
	}
	s, err := sqlite.File(o.Path).Open(context.Background(), settings)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stores = append(r.stores, s)
	*number = len(r.stores) - 1
	return nil
}

// Call calls a method of a store.
func (r *Remote) Call(q Request, a *Answer) error {
	r.mu.Lock()
	s := r.stores[q.Store]
	r.mu.Unlock()
	method := reflect.ValueOf(s).MethodByName(q.Method)
	var args []reflect.Value
	if method.Type().NumIn() > len(q.Args) {
		args = append(args, reflect.ValueOf(context.Background()))
	}
	for _, encoded := range q.Args {
		arg := reflect.New(method.Type().In(len(args)))
		if err := gob.NewDecoder(bytes.NewReader(encoded)).DecodeValue(arg); err != nil {
			return err
		}
		args = append(args, arg.Elem())
	}
	for _, result := range method.Call(args) {
		if err, ok := result.Interface().(error); ok {
			a.Failed = err.Error()
			for i, meaning := range meanings {
				if errors.Is(err, meaning) {
					a.Meaning = i + 1
				}
			}
			return nil
		}
		if result.Type() != reflect.TypeFor[error]() {
			a.Value = encode(result.Interface())
		}
	}
	return nil
}

func encode(v any) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b.Bytes()
}

// remote is a store of the second process as the first sees it.
type remote struct {
	client *rpc.Client
	number int
}

func (r *remote) open(o Opening) error { return r.client.Call("Remote.Open", o, &r.number) }

func (r *remote) shift(d time.Duration) error { return r.do("SetClockOffset", d) }

func (r *remote) close() error { return r.do("Close") }

func (r *remote) do(method string, args ...any) error {
	_, err := call[struct{}](r, method, args...)
	return err
}

// call calls a method over there.
func call[A any](r *remote, method string, args ...any) (value A, err error) {
	q := Request{Store: r.number, Method: method}
	for _, arg := range args {
		q.Args = append(q.Args, encode(arg))
	}
	var a Answer
	if err := r.client.Call("Remote.Call", q, &a); err != nil {
		return value, err
	}
	if a.Failed != "" {
		err := errors.New("the second process: " + a.Failed)
		if a.Meaning > 0 {
			err = fmt.Errorf("%w: %w", err, meanings[a.Meaning-1])
		}
		return value, err
	}
	if len(a.Value) > 0 {
		err = gob.NewDecoder(bytes.NewReader(a.Value)).Decode(&value)
	}
	return value, err
}

// Each method of a spread store: here, or over there.

// What a process begins itself it accepts itself.
func handsOver(drafts []job.Draft) bool {
	return slices.ContainsFunc(drafts, func(d job.Draft) bool { return d.HandOver != nil })
}

func (s *spread) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	if r := s.next(ctx); r != nil && !handsOver(drafts) {
		return call[[]job.Receipt](r, "Enqueue", drafts)
	}
	return s.Store.Enqueue(ctx, drafts)
}

func (s *spread) Take(ctx context.Context, of store.BucketName, q job.TakeRequest) (job.TakeReply, error) {
	if r := s.next(ctx); r != nil {
		return call[job.TakeReply](r, "Take", of, q)
	}
	return s.Store.(store.Limits).Take(ctx, of, q)
}

func (s *spread) Drain(ctx context.Context, of store.BucketName, q job.TakeRequest, op *store.Operator) error {
	return s.Store.(store.Limits).Drain(ctx, of, q, op)
}

func (s *spread) Buckets(ctx context.Context, limits []string, after string, n int) ([]store.BucketInfo, error) {
	if r := s.next(ctx); r != nil {
		return call[[]store.BucketInfo](r, "Buckets", limits, after, n)
	}
	return s.Store.(store.Limits).Buckets(ctx, limits, after, n)
}

// Events stay in this process: filters do not travel as gob. Cursors go back and forth.

func (s *spread) Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	return s.Store.(store.Log).Append(ctx, drafts)
}

func (s *spread) Head(ctx context.Context) (stream.Position, error) {
	return s.Store.(store.Log).Head(ctx)
}

func (s *spread) Events(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	return s.Store.(store.Log).Events(ctx, q)
}

func (s *spread) Topics(ctx context.Context, pattern stream.TopicPattern, after string, n int) ([]store.TopicInfo, error) {
	return s.Store.(store.Log).Topics(ctx, pattern, after, n)
}

func (s *spread) EventsBack(ctx context.Context, q store.EventQuery) (store.EventPage, error) {
	return s.Store.(store.LogBack).EventsBack(ctx, q)
}

func (s *spread) NewestEvents(ctx context.Context, topics []store.TopicInfo) (map[int32]time.Time, error) {
	return s.Store.(store.LogBack).NewestEvents(ctx, topics)
}

func (s *spread) AppendDue(ctx context.Context, limit int) (store.AppendDueReply, error) {
	return s.Store.(store.Delays).AppendDue(ctx, limit)
}

func (s *spread) Trim(ctx context.Context, q store.TrimRequest) (store.TrimReply, error) {
	return s.Store.(store.Trimmer).Trim(ctx, q)
}

func (s *spread) TopicNamed(ctx context.Context, name string) (store.TopicState, error) {
	return s.Store.(store.TopicReader).TopicNamed(ctx, name)
}

// Claim stays in the worker's own process, which may know of claims that found
// nothing; a worker is one boot of one process.
func (s *spread) Claim(ctx context.Context, c store.Claim) (store.ClaimReply, error) {
	if c.Worker%2 == 0 && ctx.Err() == nil {
		return call[store.ClaimReply](s.there, "Claim", c)
	}
	return s.Store.Claim(ctx, c)
}

func (s *spread) Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	own := slices.ContainsFunc(ends, func(e job.End) bool { return e.Then.Some() && handsOver(e.Then.Drafts) })
	if r := s.next(ctx); r != nil && !own {
		return call[[]job.Verdict](r, "Finish", w, ends)
	}
	return s.Store.Finish(ctx, w, ends)
}

func (s *spread) Note(ctx context.Context, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	if r := s.next(ctx); r != nil {
		return call[[]job.Verdict](r, "Note", w, notes)
	}
	return s.Store.Note(ctx, w, notes)
}

func (s *spread) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if r := s.next(ctx); r != nil {
		return call[[]store.Change](r, "Cancel", ids, op)
	}
	return s.Store.Cancel(ctx, ids, op)
}

func (s *spread) Retry(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if r := s.next(ctx); r != nil {
		return call[[]store.Change](r, "Retry", ids, op)
	}
	return s.Store.Retry(ctx, ids, op)
}

func (s *spread) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	if r := s.next(ctx); r != nil {
		return call[[]store.Change](r, "Delete", ids, op)
	}
	return s.Store.Delete(ctx, ids, op)
}

func (s *spread) SetPaused(ctx context.Context, p store.Pause, paused bool, op store.Operator) error {
	if r := s.next(ctx); r != nil {
		return r.do("SetPaused", p, paused, op)
	}
	return s.Store.SetPaused(ctx, p, paused, op)
}

func (s *spread) CoolDown(ctx context.Context, queue string, t job.Throttle) (store.CoolDownReply, error) {
	if r := s.next(ctx); r != nil {
		return call[store.CoolDownReply](r, "CoolDown", queue, t)
	}
	return s.Store.(store.CoolDowns).CoolDown(ctx, queue, t)
}

func (s *spread) ResetCoolDown(ctx context.Context, queue string, op store.Operator) error {
	if r := s.next(ctx); r != nil {
		return r.do("ResetCoolDown", queue, op)
	}
	return s.Store.(store.CoolDowns).ResetCoolDown(ctx, queue, op)
}

func (s *spread) Override(ctx context.Context, set store.Setting, value json.RawMessage, op store.Operator) error {
	if r := s.next(ctx); r != nil {
		return r.do("Override", set, value, op)
	}
	return s.Store.Override(ctx, set, value, op)
}

func (s *spread) Settings(ctx context.Context) (store.SettingsReply, error) {
	if r := s.next(ctx); r != nil {
		return call[store.SettingsReply](r, "Settings")
	}
	return s.Store.Settings(ctx)
}

func (s *spread) Register(ctx context.Context, w store.Worker) (job.WorkerID, error) {
	if r := s.next(ctx); r != nil {
		return call[job.WorkerID](r, "Register", w)
	}
	return s.Store.Register(ctx, w)
}

func (s *spread) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	if r := s.next(ctx); r != nil {
		return call[store.BeatReply](r, "Beat", b)
	}
	return s.Store.Beat(ctx, b)
}

func (s *spread) ReportRuns(ctx context.Context, w job.WorkerID, held []store.RunRef) (store.ReportReply, error) {
	if r := s.next(ctx); r != nil {
		return call[store.ReportReply](r, "ReportRuns", w, held)
	}
	return s.Store.ReportRuns(ctx, w, held)
}

func (s *spread) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	if r := s.next(ctx); r != nil {
		return call[store.MarkLostReply](r, "MarkLost", l)
	}
	return s.Store.MarkLost(ctx, l)
}

func (s *spread) MarkDead(ctx context.Context, dead []job.WorkerID) (int, error) {
	if r := s.next(ctx); r != nil {
		return call[int](r, "MarkDead", dead)
	}
	return s.Store.MarkDead(ctx, dead)
}

func (s *spread) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	if r := s.next(ctx); r != nil {
		return call[store.RescueReply](r, "Rescue", limit)
	}
	return s.Store.Rescue(ctx, limit)
}

func (s *spread) Expire(ctx context.Context, limit int) (store.ExpireReply, error) {
	if r := s.next(ctx); r != nil {
		return call[store.ExpireReply](r, "Expire", limit)
	}
	return s.Store.Expire(ctx, limit)
}

func (s *spread) Regate(ctx context.Context, rules *job.GateRules, limit int) (store.RegateReply, error) {
	return s.Store.(store.Gatekeeper).Regate(ctx, rules, limit)
}

func (s *spread) MakeDueAgain(ctx context.Context, b store.ClockStep, limit int) (int, error) {
	if r := s.next(ctx); r != nil {
		return call[int](r, "MakeDueAgain", b, limit)
	}
	return s.Store.MakeDueAgain(ctx, b, limit)
}

func (s *spread) Purge(ctx context.Context, limit int) (int, error) {
	if r := s.next(ctx); r != nil {
		return call[int](r, "Purge", limit)
	}
	return s.Store.Purge(ctx, limit)
}

func (s *spread) Check(ctx context.Context, c store.Check) (store.CheckReport, error) {
	if r := s.next(ctx); r != nil {
		return call[store.CheckReport](r, "Check", c)
	}
	return s.Store.Check(ctx, c)
}

func (s *spread) Get(ctx context.Context, ids []job.ID) ([]job.Job, error) {
	if r := s.next(ctx); r != nil {
		return call[[]job.Job](r, "Get", ids)
	}
	return s.Store.Get(ctx, ids)
}

func (s *spread) ScheduleStates(ctx context.Context) (store.ScheduleStates, error) {
	if r := s.next(ctx); r != nil {
		return call[store.ScheduleStates](r, "ScheduleStates")
	}
	return s.Store.(store.Schedules).ScheduleStates(ctx)
}

func (s *spread) Fire(ctx context.Context, revision int64, list []store.Firing) ([]store.Fired, error) {
	begins := slices.ContainsFunc(list, func(f store.Firing) bool { return handsOver(f.Jobs) })
	if r := s.next(ctx); r != nil && !begins {
		return call[[]store.Fired](r, "Fire", revision, list)
	}
	return s.Store.(store.Schedules).Fire(ctx, revision, list)
}

func (s *spread) TriggerSchedule(ctx context.Context, name string, draft job.Draft, op store.Operator) (job.Receipt, error) {
	return s.Store.(store.Schedules).TriggerSchedule(ctx, name, draft, op)
}

func (s *spread) ForgetSchedule(ctx context.Context, name string) error {
	return s.Store.(store.Schedules).ForgetSchedule(ctx, name)
}

func (s *spread) OpenCursor(ctx context.Context, o store.CursorOpen) (store.CursorState, error) {
	if r := s.next(ctx); r != nil {
		return call[store.CursorState](r, "OpenCursor", o)
	}
	return s.Store.(store.Cursors).OpenCursor(ctx, o)
}

func (s *spread) MoveCursor(ctx context.Context, m store.CursorMove) (store.CursorState, error) {
	if r := s.next(ctx); r != nil {
		return call[store.CursorState](r, "MoveCursor", m)
	}
	return s.Store.(store.Cursors).MoveCursor(ctx, m)
}

func (s *spread) RenewCursor(ctx context.Context, m store.CursorMove) error {
	if r := s.next(ctx); r != nil {
		return r.do("RenewCursor", m)
	}
	return s.Store.(store.Cursors).RenewCursor(ctx, m)
}

func (s *spread) FreeCursor(ctx context.Context, m store.CursorMove) error {
	if r := s.next(ctx); r != nil {
		return r.do("FreeCursor", m)
	}
	return s.Store.(store.Cursors).FreeCursor(ctx, m)
}

func (s *spread) ListCursors(ctx context.Context, after string, n int) ([]store.CursorInfo, error) {
	if r := s.next(ctx); r != nil {
		return call[[]store.CursorInfo](r, "ListCursors", after, n)
	}
	return s.Store.(store.Cursors).ListCursors(ctx, after, n)
}

func (s *spread) CursorNamed(ctx context.Context, name string) (store.CursorInfo, error) {
	if r := s.next(ctx); r != nil {
		return call[store.CursorInfo](r, "CursorNamed", name)
	}
	return s.Store.(store.Cursors).CursorNamed(ctx, name)
}

func (s *spread) SeekCursor(ctx context.Context, name string, to stream.Position, op store.Operator) error {
	if r := s.next(ctx); r != nil {
		return r.do("SeekCursor", name, to, op)
	}
	return s.Store.(store.Cursors).SeekCursor(ctx, name, to, op)
}

func (s *spread) DeleteCursor(ctx context.Context, name string, op store.Operator) error {
	if r := s.next(ctx); r != nil {
		return r.do("DeleteCursor", name, op)
	}
	return s.Store.(store.Cursors).DeleteCursor(ctx, name, op)
}
