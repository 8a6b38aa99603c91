package boot

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also where the processes of the tests begin: each says who it is
// and lives until its standard input ends.
func TestMain(m *testing.M) {
	if os.Getenv("PAWL_BOOT_CHILD") != "" {
		me := Self()
		_, _ = os.Stdout.WriteString(me.Machine + "\n" + me.Start + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// process is another process of this machine.
type process struct {
	*exec.Cmd
	id Identity
	t  *testing.T
}

func start(t *testing.T) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), t: t}
	p.Env = append(os.Environ(), "PAWL_BOOT_CHILD=1")
	input, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if p.ProcessState == nil {
			_ = p.Wait()
		}
	})
	lines := bufio.NewScanner(output)
	read := func() string {
		if !lines.Scan() {
			t.Fatal("the process said nothing:", lines.Err())
		}
		return lines.Text()
	}
	p.id = Identity{Machine: read(), Start: read(), Process: p.Process.Pid}
	return p
}

// kill ends the process as a crash does. It is a zombie until it is collected.
func (p *process) kill() {
	p.t.Helper()
	if err := p.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	const exited, noWait = 0x4, 0x01000000 // WEXITED | WNOWAIT of waitid(2): wait for the end, and leave the zombie
	const byPID = 1
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(p.Process.Pid), 0, exited|noWait, 0, 0)
		if err == syscall.EINTR {
			continue
		}
		if err != 0 {
			p.t.Fatal(err)
		}
		return
	}
}

func TestJ12_TheLivingAreNotProvenDead(t *testing.T) {
	me := Self()
	if me.Machine == "" || me.Process != os.Getpid() || me.Start == "" {
		t.Fatalf("this process is %+v", me)
	}
	if Dead(me) {
		t.Error("this process is proven dead")
	}
	p := start(t)
	if p.id.Machine != me.Machine {
		t.Fatalf("a child is of machine %q, this process of %q", p.id.Machine, me.Machine)
	}
	if Dead(p.id) {
		t.Errorf("%+v lives and is proven dead", p.id)
	}
	if Dead(Identity{Machine: me.Machine, Process: 1}) { // often not ours to signal
		t.Error("process 1 is proven dead")
	}
}

func TestJ12_TheDeadAreProvenDead(t *testing.T) {
	p := start(t)
	p.kill()
	if !Dead(p.id) {
		t.Error("a zombie is not proven dead")
	}
	_ = p.Wait() // collected: its number is free
	if !Dead(p.id) {
		t.Error("a process that is no more is not proven dead")
	}
}

func TestJ12_ANumberThatWasGivenAwayAgain(t *testing.T) {
	p := start(t)
	before := p.id
	_, clock, _ := strings.Cut(before.Start, " ")
	before.Start = "1 " + clock
	if !Dead(before) {
		t.Errorf("%+v had the number of %+v before it, and is not proven dead", before, p.id)
	}
}

// TestJ12_WhatIsUnclearProvesNothing takes a process that is surely dead, and
// changes one thing that makes the question unanswerable here.
func TestJ12_WhatIsUnclearProvesNothing(t *testing.T) {
	p := start(t)
	p.kill()
	_ = p.Wait()
	part := strings.Fields(p.id.Machine)
	for name, machine := range map[string]string{
		"another start of the kernel": "11111111-1111-1111-1111-111111111111 " + strings.Join(part[1:], " "),
		"another pid namespace":       part[0] + " pid:[1] " + part[2],
		"another host":                part[0] + " " + part[1] + " elsewhere",
		"no machine":                  "",
	} {
		if id := (Identity{Machine: machine, Process: p.id.Process, Start: p.id.Start}); Dead(id) {
			t.Errorf("%s: proven dead", name)
		}
	}
	if Dead(Identity{Machine: p.id.Machine}) {
		t.Error("no number: proven dead")
	}
	if dead(Identity{}, Identity{Process: p.id.Process}) {
		t.Error("a system without proof proves it")
	}
	live := start(t)
	for _, began := range []string{"", "1", "1 time:[1]", " "} {
		if id := live.id; Dead(Identity{Machine: id.Machine, Process: id.Process, Start: began}) {
			t.Errorf("started at %q: proven dead", began)
		}
	}
}

// TestJ12_AnotherPidNamespace is a process whose number means another one to us.
func TestJ12_AnotherPidNamespace(t *testing.T) {
	me := Self()
	other := me
	part := strings.Fields(me.Machine)
	other.Machine = part[0] + " pid:[4026539999] " + part[2]
	other.Process = 1 << 22 // above every number there is
	if dead(me, other) {
		t.Error("a process of another namespace is proven dead by its number")
	}
	other.Machine = me.Machine
	if !dead(me, other) {
		t.Error("the same number of this namespace is not proven dead: the test above proves nothing")
	}
}

func TestStat_TheNameOfAProgramMayHoldAnything(t *testing.T) {
	state, start, err := parse([]byte("7 (a) S (b) Z 1) R 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4242 21 22\n"))
	if err != nil || state != 'R' || start != "4242" {
		t.Errorf("state %c, start %s, %v", state, start, err)
	}
	for _, text := range []string{"", "7 (a", "7 (a) R 1 2", "7 (a) RR 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4242"} {
		if _, _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
