package httpapi_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
	"github.com/pawlwork/pawl/store/sqlite"
)

// want reads an event's data.
func want[T any](t *testing.T, m message, name string) (v T) {
	t.Helper()
	if m.name != name || m.id == "" {
		t.Fatalf("%+v, want %s", m, name)
	}
	d := json.NewDecoder(strings.NewReader(m.data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, m.data)
	}
	return v
}

func (p *piped) enqueue(queue string) pawl.ID {
	p.t.Helper()
	r, err := p.e.Enqueue(p.t.Context(), pawl.RawArgs("k", []byte(`{"secret":1}`)), pawl.Queue(queue))
	if err != nil {
		p.t.Fatal(err)
	}
	return r.ID
}

func TestU4_AWatcherSeesWhatChangesAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{})
		defer p.close()
		for range 3 {
			p.enqueue("mail")
		}
		p.enqueue("slow")
		r := p.watch("overview", "")
		o := want[httpapi.Overview](t, r.next(), "reset")
		if len(o.Queues) != 2 || o.Queues[0].Name != "mail" || o.Queues[0].Ready.Jobs != 3 || o.Queues[0].OldestReady.IsZero() ||
			len(o.States) != 1 || o.States[0] != (httpapi.StateTotal{State: "waiting", Jobs: 4}) {
			t.Errorf("%+v", o)
		}
		id := p.enqueue("slow")
		o = want[httpapi.Overview](t, r.next(), "change")
		if len(o.Queues) != 1 || o.Queues[0].Name != "slow" || o.Queues[0].Ready.Jobs != 2 || o.States[0].Jobs != 5 || o.Gone != nil {
			t.Errorf("%+v", o)
		}
		if _, err := p.e.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if o = want[httpapi.Overview](t, r.next(), "change"); len(o.States) != 2 {
			t.Errorf("%+v", o)
		}
		if _, err := p.e.DeleteAll(t.Context(), pawl.Filter{Queue: "slow", States: []pawl.State{pawl.StateWaiting}}); err != nil {
			t.Fatal(err)
		}
		if o = want[httpapi.Overview](t, r.next(), "change"); len(o.Gone) != 1 || o.Gone[0] != "slow" {
			t.Errorf("%+v", o)
		}
		r.close()
	})
}

func TestU4_AQueueAndAJobAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{})
		defer p.close()
		queue := p.watch("queue:mail", "")
		if q := want[httpapi.QueueNow](t, queue.next(), "reset"); q.Name != "mail" || q.Ready.Jobs != 0 {
			t.Errorf("%+v", q)
		}
		id := p.enqueue("mail")
		if q := want[httpapi.QueueNow](t, queue.next(), "change"); q.Ready.Jobs != 1 {
			t.Errorf("%+v", q)
		}
		if err := p.e.Queue("mail").Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if q := want[httpapi.QueueNow](t, queue.next(), "change"); !q.Paused {
			t.Errorf("%+v", q)
		}
		queue.close()

		watched := p.watch("job:"+strings.ToUpper(id.String()), "")
		if j := want[httpapi.JobNow](t, watched.next(), "reset"); j.ID != id.String() || j.State != "waiting" || j.Args != nil || j.Headers != nil {
			t.Errorf("%+v", j)
		}
		if _, err := p.e.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if j := want[httpapi.JobNow](t, watched.next(), "change"); j.State != "cancelled" {
			t.Errorf("%+v", j)
		}
		if _, err := p.e.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		want[struct{}](t, watched.next(), "gone")
		if m := watched.next(); m.name != "end" {
			t.Errorf("%+v", m)
		}
		if answer := p.open("job:"+id.String(), ""); answer.StatusCode != 404 {
			t.Error(answer.Status)
		} else {
			answer.Body.Close()
		}
	})
}

func TestU4_WhoComesBackGoesOnOrBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{})
		defer p.close()
		r := p.watch("queue:mail", "")
		first := r.next()
		p.enqueue("mail")
		second := r.next()
		r.close()
		synctest.Wait()

		p.enqueue("mail")            // while nobody watches
		time.Sleep(30 * time.Second) // virtual: the watch rests, and is not forgotten yet
		r = p.watch("queue:mail", second.id)
		third := r.next()
		if q := want[httpapi.QueueNow](t, third, "change"); q.Ready.Jobs != 2 || third.id == second.id {
			t.Errorf("%+v", q)
		}
		r.close()
		synctest.Wait()
		r = p.watch("queue:mail", first.id) // one behind the other
		if q := want[httpapi.QueueNow](t, r.next(), "change"); q.Ready.Jobs != 1 {
			t.Errorf("%+v", q)
		}
		if again := r.next(); again != third {
			t.Errorf("%+v, want %+v", again, third)
		}
		r.close()
		synctest.Wait()
		for _, unknown := range []string{"", "x", "x-1", third.id + "0", strings.Split(third.id, "-")[0] + "--1"} {
			r = p.watch("queue:mail", unknown)
			if q := want[httpapi.QueueNow](t, r.next(), "reset"); q.Ready.Jobs != 2 {
				t.Errorf("%s: %+v", unknown, q)
			}
			r.close()
			synctest.Wait()
		}
		time.Sleep(2 * time.Minute) // virtual: it is forgotten by now
		r = p.watch("queue:mail", third.id)
		want[httpapi.QueueNow](t, r.next(), "reset")
		for range 200 { // more than is kept
			p.enqueue("mail")
			r.next()
		}
		r.close()
		synctest.Wait()
		r = p.watch("queue:mail", third.id)
		if q := want[httpapi.QueueNow](t, r.next(), "reset"); q.Ready.Jobs != 202 {
			t.Errorf("%+v", q)
		}
		r.close()
	})
}

func TestU4_AQuietStreamBeatsAndEndsAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{})
		defer p.close()
		r := p.watch("overview", "")
		r.next()
		began := time.Now()
		if m := r.next(); m.name != ":" || time.Since(began) != 5*time.Second { // of virtual time
			t.Errorf("%+v after %s", m, time.Since(began))
		}
		for m := r.next(); m.name != "end"; m = r.next() {
		}
		if took := time.Since(began); took != 10*time.Minute {
			t.Errorf("it ended after %s", took)
		}
		r.close()
	})
}

func TestU4_ASlowReaderIsDroppedAndHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{Streams: 2})
		defer p.close()
		slow, err := p.net.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(slow, "GET /api/v1/watch?subject=queue:mail HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it reads nothing, on a network without buffers
		r := p.watch("queue:mail", "")
		r.next()
		answer := p.open("overview", "")
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != 429 || !strings.Contains(string(text), "too-many-requests") {
			t.Errorf("%s: %s", answer.Status, text)
		}
		for n := range 5 {
			p.enqueue("mail")
			if q := want[httpapi.QueueNow](t, r.next(), "change"); q.Ready.Jobs != n+1 {
				t.Errorf("%+v", q)
			}
		}
		time.Sleep(11 * time.Second)     // virtual: past the time for a write
		other := p.watch("overview", "") // in the place of the one that was dropped
		want[httpapi.Overview](t, other.next(), "reset")
		other.close()
		r.close()
		if _, err := io.ReadAll(slow); err != nil {
			t.Error(err)
		}
		slow.Close()
	})
}

func TestU4_StreamsEndWithTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePiped(t, httpapi.Options{})
		defer p.server.Close()
		defer p.client.CloseIdleConnections()
		id := p.enqueue("mail")
		var readers []*reader
		for _, subject := range []string{"overview", "queue:mail", "job:" + id.String()} {
			r := p.watch(subject, "")
			r.next()
			readers = append(readers, r)
		}
		if err := p.e.Close(); err != nil {
			t.Fatal(err)
		}
		for _, r := range readers {
			if m := r.next(); m.name != "end" {
				t.Errorf("%+v", m)
			}
			r.close()
		}
	})
}

func TestU4_WhatCannotBeWatchedIsRefused(t *testing.T) {
	s := serve(t, as())
	for path, detail := range map[string]string{
		"": "subject", "?subject=": "subject", "?subject=weather": "overview", "?subject=queue:": "queue", "?subject=job:7": "7",
		"?subject=queue:a%20b": "queue", "?subject=overview&speed=9": "speed",
	} {
		s.refused("GET", "/api/v1/watch"+path, "", 422, "invalid", detail, "Role", "viewer")
	}
	s.refused("GET", "/api/v1/watch?subject=job:"+pawl.ID{}.String(), "", 404, "not-found", "", "Role", "viewer")
	s.refused("GET", "/api/v1/watch?subject=overview", "", 401, "unauthorized", "")
}

// Who asks only for the head of a stream takes no place: nothing would be sent to them, ever.
func TestU4_TheHeadOfAStreamKeepsNothingOpen(t *testing.T) {
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	server := httptest.NewServer(httpapi.Handler(e, auth.Open("ops"), httpapi.Options{Streams: 1}))
	defer server.Close()
	for range 2 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // both stay until the end
		if _, err := io.WriteString(conn, "HEAD /api/v1/watch?subject=overview HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
			t.Errorf("%s %v", line, err)
		}
	}
}

// The data of events is as the document says, over a real connection.
func TestU4_EventsAreAsDocumented(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	id := s.enqueue(1, `{"kind":"k","in":"1h","tags":["x"]}`)[0]
	for subject, schema := range map[string]string{"overview": "Overview", "queue:default": "QueueNow", "job:" + id: "JobNow"} {
		answer, err := http.Get(s.url + "/api/v1/watch?subject=" + subject)
		if err != nil {
			t.Fatal(err)
		}
		r := newReader(t, answer.Body)
		m := r.next()
		if err := s.document().validate([]byte(m.data), "components", "schemas", schema); err != nil || m.name != "reset" {
			t.Errorf("%s: %+v: %v", subject, m, err)
		}
		if err := s.document().check("GET", "/api/v1/watch", answer.StatusCode, answer.Header.Get("Content-Type"), nil); err != nil {
			t.Error(err)
		}
		r.close()
	}
}
