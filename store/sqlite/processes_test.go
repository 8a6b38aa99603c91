package sqlite_test

import (
	"context"
	"errors"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/store/storetest"
)

// Two processes on one file: each call of the suite goes to a store in this
// process or, in turn, to one in a second process. What one of them keeps in
// memory (its place in a queue, a prepared answer) must not keep the other's
// commits from it.

func TestConformance_TwoProcesses(t *testing.T) {
	other := startOther(t)
	storetest.Run(t, storetest.Declared("sqlite two processes"), other.file)
}

func TestConformance_ModelTwoProcesses(t *testing.T) {
	storetest.RunModel(t, 50, startOther(t).file)
}

func TestConformance_LinearTwoProcesses(t *testing.T) {
	storetest.RunLinear(t, startOther(t).file)
}

// otherProcess is this test binary once more, serving stores.
type otherProcess struct {
	client *rpc.Client
	cmd    *exec.Cmd
	killed bool
}

// kill ends the process as a crash does, and returns when it has ended.
func (p *otherProcess) kill() error {
	p.killed = true
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // "killed"
	return err
}

// childVariable tells the test binary that it is the second process.
const childVariable = "PAWL_TEST_SQLITE_CHILD"

// TestOtherProcess is the second process's main; in the first it does nothing.
// It ends when its standard input does, so that it cannot outlive the first.
func TestOtherProcess(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		return
	}
	server := rpc.NewServer()
	if err := server.Register(&Remote{}); err != nil {
		t.Fatal(err)
	}
	server.ServeConn(pipes{os.Stdin, os.Stdout})
}

// pipes are a process's two standard streams as one connection.
type pipes struct {
	io.Reader
	io.WriteCloser
}

func startOther(t *testing.T) *otherProcess {
	cmd := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &otherProcess{client: rpc.NewClient(pipes{out, in}), cmd: cmd}
	t.Cleanup(func() {
		_ = p.client.Close()
		if p.killed {
			return
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the second process: %v", err)
		}
	})
	return p
}

// file makes an empty database file that both processes open.
func (p *otherProcess) file(t *testing.T) store.Opener {
	return twice{other: p, path: filepath.Join(t.TempDir(), "work.db")}
}

// twice opens a file in both processes.
type twice struct {
	other *otherProcess
	path  string
}

func (o twice) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	here, err := sqlite.File(o.path).Open(ctx, s)
	if err != nil {
		return nil, err
	}
	there := &remote{client: o.other.client}
	keep := map[string]job.Keep{}
	if s.Keep != nil { // functions do not travel: the queues of the suite do
		for _, queue := range []string{"q", "a", "b", "c", "d", "e", "forget"} {
			keep[queue] = s.Keep(queue)
		}
	}
	if err := there.open(Opening{Path: o.path, Namespace: s.Namespace, MaxLost: s.MaxLost, Keep: keep}); err != nil {
		return nil, errors.Join(err, here.Close())
	}
	return &spread{Store: here, there: there}, nil
}

// spread is one store in two processes. Transactions and listening stay in the
// first, everything else goes back and forth.
type spread struct {
	store.Store // in this process
	there       *remote
	calls       atomic.Int64
}

func (s *spread) next(ctx context.Context) *remote {
	if s.calls.Add(1)%2 == 0 || ctx.Err() != nil {
		return nil
	}
	return s.there
}

// Listen hears what the other process commits.
func (s *spread) Listen(ctx context.Context, hear func(store.Hint)) error {
	return s.Store.(store.Listener).Listen(ctx, hear)
}

func (s *spread) SetClockOffset(d time.Duration) {
	s.Store.(interface{ SetClockOffset(time.Duration) }).SetClockOffset(d)
	if err := s.there.shift(d); err != nil {
		panic(err)
	}
}

// WaitingQueues are those that this process sees, which sees what both commit.
func (s *spread) WaitingQueues(ctx context.Context, after string, limit int) ([]string, error) {
	return s.Store.(store.QueueLister).WaitingQueues(ctx, after, limit)
}

// Counts are those of this process, which sees what both commit.
func (s *spread) Counts(ctx context.Context) ([]store.QueueCount, error) {
	return s.Store.(store.Counter).Counts(ctx)
}

// Intents are applied in this process: functions do not travel.
func (s *spread) HandleIntents(kind store.IntentKind, apply func(exec func(text string, args ...any) error, list []store.Intent) error) {
	s.Store.(*sqlite.Store).HandleIntents(kind, apply)
}

func (s *spread) ApplyIntents(ctx context.Context, limit int) (store.IntentsReply, error) {
	return s.Store.(store.Intents).ApplyIntents(ctx, limit)
}

func (s *spread) WaitingIntents(ctx context.Context, limit int) ([]store.IntentInfo, error) {
	return s.Store.(store.Intents).WaitingIntents(ctx, limit)
}

// Operations are kept by this process; what they do, both see.
func (s *spread) Operate(ctx context.Context, v store.Verb, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return s.Store.(store.Operations).Operate(ctx, v, ids, op)
}

func (s *spread) Foresee(ctx context.Context, v store.Verb, ids []job.ID) ([]store.Foreseen, error) {
	return s.Store.(store.Operations).Foresee(ctx, v, ids)
}

func (s *spread) StartOperation(ctx context.Context, o store.Operation) (store.Operation, error) {
	return s.Store.(store.Operations).StartOperation(ctx, o)
}

func (s *spread) AdvanceOperation(ctx context.Context, id job.ID) (store.AdvanceReply, error) {
	return s.Store.(store.Operations).AdvanceOperation(ctx, id)
}

func (s *spread) CancelOperation(ctx context.Context, id job.ID, op store.Operator) (store.Operation, error) {
	return s.Store.(store.Operations).CancelOperation(ctx, id, op)
}

func (s *spread) Operations(ctx context.Context, p store.OperationPage) ([]store.Operation, error) {
	return s.Store.(store.Operations).Operations(ctx, p)
}

// Erase is done by this process; what the other one remembers must not matter.
func (s *spread) Erase(ctx context.Context, limit int) (int, bool, error) {
	return s.Store.(store.Eraser).Erase(ctx, limit)
}

// Queues are those of this process too.
func (s *spread) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	return s.Store.(store.QueueReader).Queues(ctx, names)
}

func (s *spread) AddMetrics(ctx context.Context, f store.MetricFlush) error {
	return s.Store.(store.Metrics).AddMetrics(ctx, f)
}

func (s *spread) ReadMetrics(ctx context.Context, q store.MetricQuery) (store.MetricReply, error) {
	return s.Store.(store.Metrics).ReadMetrics(ctx, q)
}

func (s *spread) RollUp(ctx context.Context, limit int) (store.RollUpReply, error) {
	return s.Store.(store.Metrics).RollUp(ctx, limit)
}

// CheckRules are those of the build, which both run.
func (s *spread) CheckRules() []string {
	return s.Store.(interface{ CheckRules() []string }).CheckRules()
}

// Rules and repairs are those of this process too.
func (s *spread) Rules() []store.Rule { return s.Store.(store.Repairer).Rules() }

func (s *spread) Repair(ctx context.Context, faults []store.Fault, r store.RepairRequest) ([]store.Repair, error) {
	return s.Store.(store.Repairer).Repair(ctx, faults, r)
}

func (s *spread) Close() error { return errors.Join(s.Store.Close(), s.there.close()) }
