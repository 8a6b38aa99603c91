package need

import (
	"testing"
	"time"
)

// A standby has what the primary committed, and takes writes once it is promoted, also when the primary is gone.
func TestPostgresStandby_TakesOver(t *testing.T) {
	// Set from the start: a session that has heard of it later does not wait for the standby before the checkpointer
	// has heard of it, too.
	primary := PostgresServer(t, "synchronous_standby_names=*")
	first := connect(t, primary.URL())
	run(t, first, "SET synchronous_commit = local") // there is none yet
	run(t, first, "CREATE TABLE job (content text)")
	standby := PostgresStandby(t, primary.Port())
	run(t, first, "SET synchronous_commit = remote_apply")
	run(t, first, "INSERT INTO job VALUES ('replicated')")
	second := connect(t, standby.URL())
	if !value[bool](t, second, "SELECT pg_is_in_recovery()") {
		t.Error("the standby is no standby")
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	if got := value[string](t, second, "SELECT content FROM job"); got != "replicated" {
		t.Errorf("it has %q", got)
	}
	run(t, second, "INSERT INTO job VALUES ('taken over')")
	if err := standby.Stop(); err != nil {
		t.Error(err)
	}
	if err := standby.Start(); err != nil {
		t.Error(err)
	}
}

// A server that is dismissed takes no new client and goes when the last one has left.
func TestPostgresServer_Dismissed(t *testing.T) {
	server := PostgresServer(t)
	last := connect(t, server.URL())
	gone, err := server.Dismiss()
	if err != nil {
		t.Fatal(err)
	}
	run(t, last, "CREATE TABLE job (content text)")
	if err := last.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("it stays although nobody is left")
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if err := server.Start(); err != nil {
		t.Error(err)
	}
}

// The clock of a server can be set under sessions that are open, both ways.
func TestClockedPostgres_Steps(t *testing.T) {
	server, step := ClockedPostgres(t)
	c := connect(t, server.URL())
	for _, off := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, time.Hour} {
		step(off)
		got := value[time.Time](t, c, "SELECT statement_timestamp()")
		if wrong := time.Until(got) - off; wrong.Abs() > time.Minute {
			t.Errorf("set %v off, its clock is %v off", off, wrong+off)
		}
	}
}
