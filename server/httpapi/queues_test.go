package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

// working is a served engine that runs as billing of version v1. A job of kind "hello"
// has run, so it is registered and has declared what it declares.
func working(t *testing.T, edit ...func(*pawl.Config)) *served {
	t.Helper()
	s := serve(t, auth.Open("ann"), append([]func(*pawl.Config){func(c *pawl.Config) { c.Owner, c.Version = "billing", "v1" }}, edit...)...)
	pawl.HandleRaw(s.e, "hello", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	pawl.HandleRaw(s.e, "fail", func(context.Context, *pawl.Job[pawl.Raw]) error { return pawl.RetryIn(time.Hour, errors.New("no")) })
	pawl.HandleRaw(s.e, "throttled", func(context.Context, *pawl.Job[pawl.Raw]) error { return pawl.Throttled(time.Hour) })
	s.run()
	var r httpapi.Receipt
	s.call("POST", "/api/v1/jobs", `{"kind":"hello"}`, 201, &r)
	var j httpapi.Job
	if s.call("GET", "/api/v1/jobs/"+r.ID+"?wait=60s", "", 200, &j); j.State != "done" {
		t.Fatalf("%+v", j)
	}
	return s
}

// audited wants the newest entry of the audit log about a target.
func (s *served) audited(target, action, detail string) {
	s.t.Helper()
	list, err := s.e.Audit(s.t.Context(), pawl.AuditFilter{Target: target}, pawl.AuditPage{Limit: 1})
	if err != nil || len(list.Entries) != 1 {
		s.t.Fatalf("audit of %s: %+v, %v", target, list, err)
	}
	if a := list.Entries[0]; a.By != "ann" || a.Note != "because" || a.Action != action || !strings.Contains(a.Detail, detail) {
		s.t.Errorf("audit of %s: %+v, want %s with %q by ann, because", target, a, action, detail)
	}
}

func TestU2_AQueueIsReadWithHowItStands(t *testing.T) {
	ended := make(chan pawl.Finished, 10)
	s := working(t, func(c *pawl.Config) {
		c.Queues["mail"] = pawl.QueueConfig{Workers: 5, Total: 3, KeepDead: 48 * time.Hour}
		c.Queues["slow"] = pawl.QueueConfig{Workers: 2}
		c.Hooks.Finish = func(f pawl.Finished) { ended <- f }
	})
	<-ended
	s.call("POST", "/api/v1/jobs", `{"kind":"fail","queue":"mail"}`, 201, nil)
	<-ended
	s.call("POST", "/api/v1/queues/mail/pause", "", 200, nil, "Pawl-Note", "the relay is down")
	s.call("POST", "/api/v1/jobs", `{"kind":"hello","queue":"mail"}`, 201, nil)
	s.call("POST", "/api/v1/jobs", `{"kind":"hello","queue":"mail"}`, 201, nil)
	var q httpapi.Queue
	s.call("GET", "/api/v1/queues/mail", "", 200, &q)
	if q.Ready.Jobs != 2 || q.OldestReady.IsZero() || q.Scheduled.Jobs != 1 || q.Retries.Jobs != 1 || q.Running.Jobs != 0 ||
		q.Slots != 5 || q.Total != 3 || q.Workers != 1 || len(q.Labels) != 1 {
		t.Errorf("%+v", q)
	}
	if p := q.Pause; p == nil || p.Scope != "queue" || p.Name != "mail" || p.By != "ann" || p.Note != "the relay is down" || p.Since.IsZero() {
		t.Errorf("%+v", p)
	}
	if h := q.Settings; h.Owner != "billing" || h.Version != "v1" || h.Holds.Total == nil ||
		*h.Holds.Total != 3 || h.Holds.KeepDead != "48h0m0s" {
		t.Errorf("%+v", h)
	}
	ofMail := func(c httpapi.QueueCounts) bool { return c.Queue == "mail" }
	var counts httpapi.CountList
	s.call("GET", "/api/v1/counts", "", 200, &counts)
	if i := slices.IndexFunc(counts.Counts, ofMail); i < 0 || counts.Counts[i].States["waiting"].Jobs != 3 {
		t.Errorf("%+v", counts)
	}
	s.call("POST", "/api/v1/jobs", `{"kind":"throttled","queue":"slow"}`, 201, nil)
	<-ended
	s.call("GET", "/api/v1/queues/slow", "", 200, &q)
	if q.CoolDown == nil || q.CoolDown.Throttles != 1 || !q.CoolDown.Until.After(q.CoolDown.Since) {
		t.Errorf("%+v", q.CoolDown)
	}
	s.call("POST", "/api/v1/queues/slow/pause", "", 200, nil) // else its job may be throttled anew before the answer is made
	q = httpapi.Queue{}
	if s.call("POST", "/api/v1/queues/slow/reset-cool-down", "", 200, &q, "Pawl-Note", "because"); q.CoolDown != nil {
		t.Errorf("%+v", q.CoolDown)
	}
	s.audited("slow", "reset cool-down", "")
}

func TestU2_AQueueIsPausedAndResumed(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	var q httpapi.Queue
	if s.call("POST", "/api/v1/queues/mail/pause", "", 200, &q, "Pawl-Note", "because"); q.Pause == nil || q.Pause.By != "ann" {
		t.Errorf("%+v", q)
	}
	s.audited("mail", "pause", "")
	q = httpapi.Queue{}
	if s.call("POST", "/api/v1/queues/mail/resume", "", 200, &q, "Pawl-Note", "because"); q.Pause != nil {
		t.Errorf("%+v", q)
	}
	s.audited("mail", "resume", "")
	slash := "/api/v1/queues/" + url.PathEscape("eu/mail")
	if s.call("POST", slash+"/pause", "", 200, &q); q.Name != "eu/mail" || q.Pause.Name != "eu/mail" {
		t.Errorf("%+v", q)
	}
	s.call("GET", slash, "", 200, nil)
}

func TestU2_QueueSettingsAreSetOverWhatCodeDeclares(t *testing.T) {
	s := working(t, func(c *pawl.Config) { c.Queues["mail"] = pawl.QueueConfig{Workers: 5, Total: 3} })
	const settings = "/api/v1/queues/mail/settings"
	var q httpapi.EffectiveQueue
	s.call("PATCH", settings, `{"total":7,"attempts":9,"keep_done":"none","keep_dead":"72h","aging":"5m","backoff":{"base":"2s","factor":3}}`,
		200, &q, "Pawl-Note", "because")
	h := q.Holds
	if *h.Total != 7 || *h.Attempts != 9 || h.KeepDone != "none" || h.KeepDead != "72h0m0s" || h.KeepCancelled != "" || h.Aging != "5m0s" ||
		h.Backoff.Base != "2s" || h.Backoff.Factor != 3 || *q.Declared.Total != 3 || q.By != "ann" || q.Note != "because" {
		t.Errorf("%+v", q)
	}
	if want := []string{"aging", "attempts", "backoff", "keep_dead", "keep_done", "total"}; !slices.Equal(q.Overridden, want) {
		t.Errorf("%v, want %v", q.Overridden, want)
	}
	s.audited("mail", "set queue", "total")
	q = httpapi.EffectiveQueue{}
	if s.call("DELETE", settings+"?field=total,aging", "", 200, &q); *q.Holds.Total != 3 || q.Holds.Aging != "" || *q.Holds.Attempts != 9 {
		t.Errorf("%+v", q.Holds)
	}
	q = httpapi.EffectiveQueue{}
	if s.call("DELETE", settings, "", 200, &q); len(q.Overridden) != 0 || q.Holds.Attempts != nil || *q.Holds.Total != 3 {
		t.Errorf("%+v", q)
	}
	q = httpapi.EffectiveQueue{}
	s.call("PATCH", "/api/v1/queues/mail.*/settings", `{"total":-1}`, 200, nil)
	if s.call("GET", "/api/v1/queues/mail.eu/settings", "", 200, &q); q.Holds.Total == nil || *q.Holds.Total != -1 {
		t.Errorf("%+v", q)
	}
}

func TestU2_QueuesArePagedByACursor(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	want := []string{}
	for n := range 7 {
		name := fmt.Sprintf("q%d", n)
		want = append(want, name)
		if n == 3 { // one that has only settings is listed, too
			s.call("PATCH", "/api/v1/queues/q3/settings", `{"total":4}`, 200, nil)
			continue
		}
		s.call("POST", "/api/v1/jobs", `{"kind":"k","queue":"`+name+`"}`, 201, nil)
	}
	var got, counted []string
	for _, list := range []string{"queues", "counts"} {
		for next, page := "", 0; page == 0 || next != ""; page++ {
			if page > 5 {
				t.Fatal("it goes on for ever")
			}
			path := "/api/v1/" + list + "?limit=3&after=" + next
			if list == "queues" {
				var l httpapi.QueueList
				s.call("GET", path, "", 200, &l)
				for _, q := range l.Queues {
					got = append(got, q.Name)
				}
				next = l.Next
				continue
			}
			var l httpapi.CountList
			s.call("GET", path, "", 200, &l)
			for _, c := range l.Counts {
				counted = append(counted, c.Queue)
			}
			next = l.Next
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(counted, slices.Delete(want, 3, 4)) {
		t.Errorf("%v, %v", got, counted)
	}
}

func TestU2_BadInputAboutQueuesIsRefused(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	for _, c := range []struct{ method, path, body, detail string }{
		{"GET", "/queues/a%20b", "", "queue"},
		{"GET", "/queues/mail.*", "", "queue"},
		{"GET", "/queues?limit=5000", "", "limit"},
		{"GET", "/queues?after=xyz", "", "after"},
		{"GET", "/counts?limit=0", "", "limit"},
		{"GET", "/queues/" + strings.Repeat("x", 129), "", "128"},
		{"POST", "/queues/mail.*/pause", "", "queue"},
		{"POST", "/queues/a%20b/reset-cool-down", "", "queue"},
		{"PATCH", "/queues/mail/settings", `{}`, "must set a field"},
		{"PATCH", "/queues/mail/settings", `{"total":0}`, "total"},
		{"PATCH", "/queues/mail/settings", `{"total":-2}`, "total"},
		{"PATCH", "/queues/mail/settings", `{"total":null}`, "total"},
		{"PATCH", "/queues/mail/settings", `{"attempts":5,"keep_done":null}`, "keep_done"},
		{"PATCH", "/queues/mail/settings", `{"keep_done":"soon","aging":"-5s"}`, "aging"},
		{"PATCH", "/queues/mail/settings", `{"keep_done":""}`, "keep_done"},
		{"PATCH", "/queues/mail/settings", `{"keep_done":"0s"}`, "keep_done"},
		{"PATCH", "/queues/mail/settings", `{"keep_done":"2000000h"}`, "KeepDone"},
		{"PATCH", "/queues/mail/settings", `{"backoff":{"base":"none"}}`, "Base"},
		{"PATCH", "/queues/mail/settings", `{"colour":"red"}`, "colour"},
		{"PATCH", "/queues/a%20b/settings", `{"total":5}`, "queue"},
		{"DELETE", "/queues/mail/settings?field=colour", "", "field"},
	} {
		s.refused(c.method, "/api/v1"+c.path, c.body, 422, "invalid", c.detail)
	}
	s.refused("GET", "/api/v1/queues/nobody", "", 404, "not-found", "queue: nobody")
	if list, err := s.e.Audit(t.Context(), pawl.AuditFilter{}, pawl.AuditPage{Limit: 1}); err != nil || len(list.Entries) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
