package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// audit adds the route of the audit log.
func (a *api) audit() {
	route(a, operation{
		method: http.MethodGet, path: "/audit", id: "list-audit", tag: "audit", role: auth.Viewer,
		summary: "List what operators did, the newest first",
	}, a.listAudit)
}

type auditInput struct {
	Target string    `query:"target" maxLength:"1024" doc:"a job's id, a queue or another name; * for what is about everything"`
	By     string    `query:"by" maxLength:"1024"`
	Action string    `query:"action" maxLength:"200" doc:"such as retry, pause or set queue"`
	Since  time.Time `query:"since"`
	Until  time.Time `query:"until" doc:"the first moment that is too late"`
	Limit  int       `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	After  string    `query:"after" maxLength:"1000" doc:"next of the page before"`
}

// AuditEntry is one thing that an operator did.
type AuditEntry struct {
	ID     int64     `json:"id"`
	Time   time.Time `json:"time"`
	By     string    `json:"by"`
	Action string    `json:"action"`
	Target string    `json:"target"`
	Note   string    `json:"note,omitempty"`
	Detail string    `json:"detail,omitempty" doc:"what changed; none for who may not see payloads, where a schedule's arguments could be in it"`
}

// AuditList is one page.
type AuditList struct {
	Entries []AuditEntry `json:"entries" nullable:"false"`
	Next    string       `json:"next,omitempty" doc:"the next page begins behind it, also where this one is not full; none: this is the last"`
}

func (a *api) listAudit(ctx context.Context, in *auditInput) (*body[AuditList], error) {
	page := pawl.AuditPage{Limit: in.Limit}
	if err := readCursor(in.After, &page.After); err != nil {
		return nil, err
	}
	f := pawl.AuditFilter{Target: in.Target, By: in.By, Action: in.Action, After: in.Since, Before: in.Until}
	list, err := a.e.Audit(ctx, f, page)
	if err != nil {
		return nil, err
	}
	out := AuditList{Entries: make([]AuditEntry, len(list.Entries))}
	hidden := auth.From(ctx).Hidden
	for i, e := range list.Entries {
		if hidden && tellsPayload(e.Action) {
			e.Detail = ""
		}
		out.Entries[i] = AuditEntry(e)
	}
	if list.More {
		out.Next = cursor(list.Next)
	}
	return answer(out), nil
}

// tellsPayload reports whether an entry's detail may hold arguments or headers of jobs: it
// says of each field what it was and is.
func tellsPayload(action string) bool {
	return action == "set "+string(store.SettingSchedule) || action == "reset "+string(store.SettingSchedule)
}
