package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pawlwork/pawl/job"
)

// demo is pawl demo, on a port of its own.
type demo struct {
	cmd  *exec.Cmd
	url  string
	said *bytes.Buffer // what it told; read after its end
	gone chan error
}

// patience is how long something may take that only a fault keeps from happening.
const patience = time.Minute

// startDemo starts one and reads its address from what it prints. Its store is in dir.
func startDemo(ctx context.Context, program, dir string) (*demo, error) {
	d := &demo{cmd: exec.Command(program, "demo", "--listen", "127.0.0.1:0", "--dir", filepath.Join(dir, "store"), "--grace", "2s"),
		said: new(bytes.Buffer), gone: make(chan error, 1)}
	d.cmd.Args[0] = "pawl" // as its hints name it
	d.cmd.Env = append(os.Environ(), "PAWL_STORE=", "PAWL_STORE_FILE=", "PAWL_SERVER=", "PAWL_CONFIG=", "PAWL_TOKEN=", "PAWL_QUEUES=")
	d.cmd.Stderr = d.said
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us; we stop it
	out, to := io.Pipe()
	d.cmd.Stdout = to
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := d.cmd.Wait()
		_ = to.Close()
		d.gone <- err
	}()
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, url, ok := strings.Cut(lines.Text(), "pawl demo is at "); ok {
				address <- strings.TrimSuffix(url, "/")
			}
		}
	}()
	select {
	case d.url = <-address:
		return d, nil
	case err := <-d.gone:
		return nil, fmt.Errorf("the demo ended: %v\n%s", err, d.said)
	case <-ctx.Done():
	case <-time.After(patience):
	}
	return nil, errors.Join(errors.New("the demo printed no address"), context.Cause(ctx), d.stop())
}

// stop stops it, and its children with it.
func (d *demo) stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-d.gone:
		if err != nil {
			return fmt.Errorf("the demo failed: %w\n%s", err, d.said)
		}
		return nil
	case <-time.After(patience):
		_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
		<-d.gone
		return errors.New("the demo did not stop, and was killed")
	}
}

// call asks the API.
func (d *demo) call(ctx context.Context, method, path, note, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, d.url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if note != "" {
		r.Header.Set("Pawl-Note", note)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		return errors.Join(fmt.Errorf("%s %s: %s %s", method, path, answer.Status, text), err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// prepare lets the company live, and does meanwhile what an operator does, so that Audit and what was changed have something to show.
func (d *demo) prepare(ctx context.Context, live time.Duration) error {
	begun := time.Now()
	for _, step := range []struct {
		at                       float64 // of live
		method, path, note, body string
	}{
		{.3, "POST", "/queues/exports/pause", "the bucket is being moved", ""},
		{.4, "PATCH", "/queues/mail/settings", "the relay asked for less", `{"total":12}`},
		{.5, "PATCH", "/schedules/monday-mail/settings", "later, after the standup", `{"cron":"15 9 * * 1"}`},
		{.6, "POST", "/schedules/carts/trigger", "", ""},
		{.8, "PATCH", "/limits/cards/settings", "agreed with the bank", `{"per_second":80}`},
		{.85, "POST", "/operations", "the bank has woken up", `{"verb":"retry","filter":{"kind":"order.charge","state":["dead"],"fingerprint":"` +
			job.Fingerprint("card declined: insufficient_funds") + `"}}`},
		{1, "", "", "", ""},
	} {
		wait := time.NewTimer(time.Until(begun.Add(time.Duration(step.at * float64(live)))))
		select {
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		case <-wait.C:
		}
		if step.method != "" {
			if err := d.call(ctx, step.method, step.path, step.note, step.body, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// job is one of a kind in a state, once there is one: not the very newest, so that it has something to tell.
func (d *demo) job(ctx context.Context, kind, state string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var found struct {
			Jobs []struct {
				ID string `json:"id"`
			} `json:"jobs"`
		}
		if err := d.call(ctx, "GET", "/jobs?limit=10&kind="+kind+"&state="+state, "", "", &found); err != nil {
			return "", err
		}
		if n := len(found.Jobs); n > 0 {
			return found.Jobs[n-1].ID, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no %s is %s: %w", kind, state, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
