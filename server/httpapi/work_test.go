package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

func TestU3_TheProtocolOfWorkers(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	var w httpapi.Registered
	s.call("POST", "/api/v1/workers", `{"queues":["default"],"kinds":["k"],"slots":2,"lost_after":"20s"}`, 201, &w)
	if w.BeatEvery != "5s" || w.LostAfter != "20s" {
		t.Errorf("%+v", w)
	}
	worker := fmt.Sprint("/api/v1/workers/", w.Worker)
	var r httpapi.Receipt
	s.call("POST", "/api/v1/jobs", `{"kind":"k","args":{"n":1}}`, 201, &r)
	var got httpapi.Claimed
	s.call("POST", worker+"/claim", `{"limit":2,"wait":"10s"}`, 200, &got)
	if len(got.Jobs) != 1 || got.Jobs[0].ID != r.ID || string(got.Jobs[0].Args.JSON) != `{"n":1}` {
		t.Fatalf("%+v", got)
	}
	run := fmt.Sprintf(`"id":%q,"run":%d`, r.ID, got.Jobs[0].Run)
	var v httpapi.Verdicts
	s.call("POST", worker+"/notes", `{"notes":[{`+run+`,"progress":{"done":1,"total":2},"logs":[{"text":"half"}]}]}`, 200, &v)
	if v.Verdicts[0] != "applied" {
		t.Errorf("%+v", v)
	}
	s.refused("POST", worker+"/notes", `{"notes":[{`+run+`,"progress":{"done":-1,"total":2}}]}`, 422, "invalid", "progress.done -1")
	s.refused("POST", worker+"/notes", `{"notes":[{`+run+`,"progress":{"done":3,"total":2}}]}`, 422, "invalid", "progress.done 3")
	end := `{"ends":[{` + run + `,"outcome":"done","progress":{"done":0,"total":-2}}]}`
	s.refused("POST", worker+"/finish", end, 422, "invalid", "progress.total -2")
	s.call("POST", "/api/v1/jobs/"+r.ID+"/cancel", "", 200, nil)
	var b httpapi.Beaten
	s.call("POST", worker+"/beat", "", 200, &b)
	if len(b.Cancels) != 1 || b.Cancels[0].ID != r.ID {
		t.Errorf("%+v", b)
	}
	s.refused("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"perhaps"}]}`, 422, "invalid", "outcome")
	s.refused("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"snoozed"}]}`, 422, "invalid", "delay")
	s.call("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"done","result":{"ok":true},"took":"5ms"}]}`, 200, &v)
	if v.Verdicts[0] != "applied" {
		t.Errorf("%+v", v)
	}
	s.call("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"done","again":true}]}`, 200, &v)
	if v.Verdicts[0] != "already" {
		t.Errorf("%+v", v)
	}
	s.call("DELETE", worker, "", 204, nil)
	s.refused("POST", worker+"/beat", "", 409, "worker-lost", "")
	s.refused("POST", "/api/v1/workers/999/claim", `{"limit":1}`, 409, "worker-lost", "999")
	s.refused("POST", "/api/v1/workers", `{"queues":[],"kinds":["k"]}`, 422, "invalid", "queues")
}

// place is a server on a file that can be stopped and started again at its address.
type place struct {
	t       *testing.T
	file    string
	address string
	e       *pawl.Engine
	server  *http.Server
	stop    func()
}

func (p *place) start() {
	p.t.Helper()
	e, err := pawl.New(sqlite.File(p.file), pawl.Config{Queues: pawl.Queues{"elsewhere": {Workers: 1}}})
	if err != nil {
		p.t.Fatal(err)
	}
	pawl.HandleRaw(e, "nothing", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.address = listener.Addr().String()
	p.e, p.server = e, &http.Server{Handler: httpapi.Handler(e, auth.Open("ops")), ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }()
	p.stop = func() {
		_ = p.server.Close()
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
		if err := e.Close(); err != nil {
			p.t.Error(err)
		}
	}
}

// python is the example's worker, as a process.
type python struct {
	*exec.Cmd
	t     *testing.T
	lines *bufio.Scanner
}

// python starts one and waits until it is registered.
func (p *place) python(env ...string) *python {
	p.t.Helper()
	w := &python{t: p.t}
	w.Cmd = exec.Command(need.Tool(p.t, "python3"), filepath.Join("..", "..", "examples", "python-worker", "worker.py"), "http://"+p.address)
	w.Env, w.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := w.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	w.lines = bufio.NewScanner(out)
	if err := w.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = w.Process.Kill(); _ = w.Wait() })
	w.says("is registered")
	return w
}

// says waits until it has said something.
func (w *python) says(what string) {
	w.t.Helper()
	for w.lines.Scan() {
		if strings.Contains(w.lines.Text(), what) {
			return
		}
	}
	w.t.Fatalf("it ended and did not say %q: %v", what, w.lines.Err())
}

func (p *place) enqueue(kind, args string) pawl.ID {
	p.t.Helper()
	r, err := p.e.Enqueue(p.t.Context(), pawl.RawArgs(kind, []byte(args)))
	if err != nil {
		p.t.Fatal(err)
	}
	return r.ID
}

func (p *place) ended(id pawl.ID) pawl.JobRecord {
	p.t.Helper()
	j, err := p.e.Wait(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return j
}

func TestU3_APythonWorkerDrainsAndSurvives(t *testing.T) {
	p := &place{t: t, file: filepath.Join(t.TempDir(), "pawl.db"), address: "127.0.0.1:0"}
	p.start()
	defer func() { p.stop() }()
	c := p.python("LEASE=30s")
	var ids []pawl.ID
	for n := range 1000 {
		ids = append(ids, p.enqueue("sum", fmt.Sprintf("[%d,1]", n)))
		if n == 500 { // the server goes away in between
			p.stop()
			p.start()
		}
	}
	for n, id := range ids {
		if j := p.ended(id); j.State != pawl.StateDone || string(j.Result) != fmt.Sprint(n+1) || j.Lost != 0 {
			t.Fatalf("job %d: %v, %s, %d lost", n, j.State, j.Result, j.Lost)
		}
	}
	// It is stopped while a job runs: that comes to its end.
	id := p.enqueue("nap", "0.5")
	c.says("begins " + id.String())
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if j := p.ended(id); j.State != pawl.StateDone || string(j.Result) != `"slept"` {
		t.Errorf("%v, %s", j.State, j.Result)
	}
}

// A worker that stands still past its lease is fenced, one that dies costs a run that is
// lost, and no more.
func TestU3_APythonWorkerIsFencedAndReplaced(t *testing.T) {
	p := &place{t: t, file: filepath.Join(t.TempDir(), "pawl.db"), address: "127.0.0.1:0"}
	p.start()
	defer func() { p.stop() }()
	stuck := p.python("LEASE=5s")
	id := p.enqueue("nap", "3")
	stuck.says("begins " + id.String())
	if err := stuck.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	killed := p.python("LEASE=5s")
	killed.says("begins " + id.String())                          // once the other is lost
	if err := stuck.Process.Signal(syscall.SIGCONT); err != nil { // it says that it is done, and is refused
		t.Fatal(err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	j := p.ended(id)
	if j.State != pawl.StateDone || j.Lost != 2 || j.Used != 0 || j.Run < 3 {
		t.Errorf("%v, run %d, %d lost, %d used", j.State, j.Run, j.Lost, j.Used)
	}
}

func TestU3_FollowUpsAreSentWithTheEnd(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	var w httpapi.Registered
	s.call("POST", "/api/v1/workers", `{"queues":["default"],"kinds":["k"]}`, 201, &w)
	worker := fmt.Sprint("/api/v1/workers/", w.Worker)
	s.call("POST", "/api/v1/jobs", `{"kind":"k"}`, 201, nil)
	var got httpapi.Claimed
	s.call("POST", worker+"/claim", `{"limit":1,"wait":"10s"}`, 200, &got)
	run := fmt.Sprintf(`"id":%q,"run":%d`, got.Jobs[0].ID, got.Jobs[0].Run)
	s.refused("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"dead","follow_ups":[{"kind":"next"}]}]}`, 422, "invalid", "done")
	s.refused("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"done","follow_ups":[{"kind":"next","in":"soon"}]}]}`, 422, "invalid", "in")
	const then = `"follow_ups":[{"kind":"next","args":{"n":1},"tags":["a"]},{"kind":"next","queue":"mail","in":"1h"}]`
	var v httpapi.Verdicts
	s.call("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"done",`+then+`}]}`, 200, &v)
	s.call("POST", worker+"/finish", `{"ends":[{`+run+`,"outcome":"done","again":true,`+then+`}]}`, 200, &v)
	if v.Verdicts[0] != "already" {
		t.Errorf("%+v", v)
	}
	var l httpapi.JobList
	if s.call("GET", "/api/v1/jobs?kind=next", "", 200, &l); len(l.Jobs) != 2 {
		t.Errorf("%d follow-ups", len(l.Jobs))
	}
}

// A handler elsewhere takes tokens over HTTP, and puts its job off when they come later: that burns no attempt.
func TestU3_ARemoteHandlerAcquires(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	s.call("PATCH", "/api/v1/limits/github/settings", `{"per_second":0.01,"burst":1}`, 200, nil)
	var w httpapi.Registered
	s.call("POST", "/api/v1/workers", `{"queues":["default"],"kinds":["k"],"slots":2}`, 201, &w)
	worker := fmt.Sprint("/api/v1/workers/", w.Worker)
	s.enqueue(2, `{"kind":"k"}`)
	var got httpapi.Claimed
	s.call("POST", worker+"/claim", `{"limit":2,"wait":"10s"}`, 200, &got)
	if len(got.Jobs) != 2 {
		t.Fatalf("%+v", got)
	}
	// The key is the run: a lost answer takes nothing more.
	key := func(j httpapi.Job) string { return fmt.Sprint(j.ID, "/", j.Run) }
	for range 2 {
		s.call("POST", "/api/v1/limits/github/acquire", `{"tokens":1,"wait":"2s"}`, 200, nil, idempotency, key(got.Jobs[0]))
	}
	s.refused("POST", "/api/v1/limits/github/acquire", `{"tokens":1,"wait":"2s"}`, 429, "rate-limited", "", idempotency, key(got.Jobs[1]))
	var v httpapi.Verdicts
	s.call("POST", worker+"/finish", fmt.Sprintf(`{"ends":[{"id":%q,"run":%d,"outcome":"done"},{"id":%q,"run":%d,"outcome":"snoozed","delay":"100s"}]}`,
		got.Jobs[0].ID, got.Jobs[0].Run, got.Jobs[1].ID, got.Jobs[1].Run), 200, &v)
	var j httpapi.Job
	if s.call("GET", "/api/v1/jobs/"+got.Jobs[1].ID, "", 200, &j); j.State != "waiting" || j.Used != 0 || time.Until(j.Due) < 30*time.Second {
		t.Errorf("%+v", j)
	}
}
