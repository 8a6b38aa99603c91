package httpapi_test

import (
	"testing"

	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

func TestU2_KindsAndEverythingArePaused(t *testing.T) {
	s := serve(t, auth.Open("ann"))
	for _, c := range []struct{ path, undo, scope, name, target, action, back string }{
		{"/kinds/mail.send/pause", "/kinds/mail.send/resume", "kind", "mail.send", "mail.send", "pause kind", "resume kind"},
		{"/freeze", "/unfreeze", "all", "", "*", "freeze", "unfreeze"},
	} {
		var p httpapi.Paused
		s.call("POST", "/api/v1"+c.path, "", 200, &p, "Pawl-Note", "because")
		if !p.Paused || p.Pause == nil || p.Pause.Scope != c.scope || p.Pause.Name != c.name || p.Pause.By != "ann" || p.Pause.Note != "because" {
			t.Errorf("%s: %+v", c.path, p)
		}
		s.audited(c.target, c.action, "")
		var l httpapi.PauseList
		if s.call("GET", "/api/v1/pauses", "", 200, &l); len(l.Pauses) != 1 || l.Pauses[0] != *p.Pause {
			t.Errorf("%s: %+v", c.path, l)
		}
		p = httpapi.Paused{}
		if s.call("POST", "/api/v1"+c.undo, "", 200, &p, "Pawl-Note", "because"); p.Paused || p.Pause != nil {
			t.Errorf("%s: %+v", c.undo, p)
		}
		s.audited(c.target, c.back, "")
	}
	s.refused("POST", "/api/v1/kinds/a%20b/pause", "", 422, "invalid", "kind")
	s.refused("POST", "/api/v1/freeze?for=1h", "", 422, "invalid", "for")
	s.refused("GET", "/api/v1/pauses?after=!", "", 422, "invalid", "after")
	s.refused("GET", "/api/v1/kinds/mail.send", "", 404, "not-found", "")
}
