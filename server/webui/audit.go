package webui

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// auditPages is what operators did.
var auditPages = []page{{
	path: "/audit", name: "audit", title: "Audit", nav: nav{label: "Audit", icon: "n-audit", order: 120, key: "a"}, load: loadAudit,
	regions: []region{
		{name: "audit-news", every: 2 * time.Second, fails: "The audit log"},
		{name: "audit-rows", tag: "tbody", every: 2 * time.Second, fails: "The audit log", items: func(v *view) ([]item, error) {
			return v.data.(*auditData).items(), nil
		}},
	},
}}

// auditTimes are the times that can be chosen; the first is all of it.
var auditTimes = []struct {
	Key, Text string
	length    time.Duration
}{
	{"", "any time", 0}, {"1h", "last hour", time.Hour}, {"24h", "last 24 h", 24 * time.Hour}, {"7d", "last 7 days", 7 * 24 * time.Hour},
	{"30d", "last 30 days", 30 * 24 * time.Hour},
}

// auditActions are those that are offered. Others can be asked for by the address.
var auditActions = []string{
	"retry", "run now", "cancel", "delete", "requeue", "set priority", "pause", "resume", "pause kind", "resume kind", "freeze", "unfreeze",
	"reset cool-down", "drain limit", "undrain limit",
	"set queue", "reset queue", "set limit", "reset limit", "set schedule", "reset schedule", "pause schedule", "resume schedule",
	"trigger schedule", "set upkeep",
	"reset upkeep", "seek cursor", "delete cursor", "pause group", "resume group", "replay group", "seek group", "delete group", "start bulk retry", "start bulk cancel", "start bulk delete", "start bulk requeue", "start bulk set priority",
}

// auditData is one page of the log.
type auditData struct {
	Rows                     []auditRow
	By, Action, Target, When string
	Actions                  []string
	Next                     string // cursor of the page that follows
	First                    bool   // this is the newest page
	News                     int    // entries that came since it was loaded
	More                     bool   // there may be more news than were counted
}

// Filtered reports whether something was left out.
func (d *auditData) Filtered() bool { return d.By+d.Action+d.Target+d.When != "" }

// Times are those that can be chosen.
func (d *auditData) Times() any { return auditTimes }

func loadAudit(v *view) (any, error) {
	q := v.query
	d := &auditData{By: q.Get("by"), Action: q.Get("action"), Target: q.Get("target"), Actions: auditActions}
	if d.Action != "" && !slices.Contains(d.Actions, d.Action) {
		d.Actions = append([]string{d.Action}, d.Actions...)
	}
	f := pawl.AuditFilter{By: d.By, Action: d.Action, Target: d.Target}
	for _, t := range auditTimes {
		if t.Key == q.Get("when") && t.length > 0 {
			d.When, f.After = t.Key, v.Now.Add(-t.length)
		}
	}
	page := pawl.AuditPage{Limit: cmp.Or(v.Prefs.Size, pageSizes[0])}
	watch := readAuditWatch(q)
	if v.live {
		page.Limit = watch.size
	}
	d.First = q.Get("after") == ""
	if !d.First {
		if err := readAuditCursor(q.Get("after"), &page.After); err != nil {
			return nil, err
		}
	}
	operations, err := cached(v, "operations", time.Second, func(ctx context.Context) ([]pawl.Operation, error) {
		return v.app.e.Operations(ctx)
	})
	if err != nil {
		return nil, err
	}
	fold := auditFold{v: v, operations: operations, folds: f.Target == "", seen: map[string]bool{}}
	// What was done to many jobs has an entry for each of them: a page of rows may take more than one page of entries.
	size, newest := page.Limit, int64(0)
	for reads := 0; reads < maxAuditReads; reads++ {
		list, err := v.readAudit(f, page)
		if err != nil {
			return nil, err
		}
		if reads == 0 && len(list.Entries) > 0 {
			newest = list.Entries[0].ID
		}
		if v.live {
			d.Rows = fold.watched(watch)
			for i := range list.Entries {
				if e := &list.Entries[i]; e.ID <= watch.newest {
					fold.add(e)
				} else if o := fold.of(e); o == nil || !watch.elements[operationElement(o)] {
					d.News++
				}
			}
			d.More = d.News == len(list.Entries) && list.More
			return d, nil
		}
		d.Next = ""
		for i := range list.Entries {
			if len(fold.rows) == size && !fold.folded(&list.Entries[i]) {
				d.Next = writeAuditCursor(list.Entries[i-1].At())
				break
			}
			fold.add(&list.Entries[i])
		}
		if d.Next != "" || !list.More {
			break
		}
		d.Next = writeAuditCursor(list.Next)
		page = pawl.AuditPage{After: list.Next, Limit: 1000}
		if len(fold.rows) == size {
			break
		}
	}
	d.Rows = fold.rows
	v.path = strings.TrimPrefix(v.With("after", q.Get("after")), v.app.opts.Prefix)
	v.Watch(watchOf(newest, size, d.Rows))
	return d, nil
}

// maxAuditReads bounds the pages of entries that one page of rows takes.
const maxAuditReads = 3

// readAudit reads a page of entries, once for all who look.
func (v *view) readAudit(f pawl.AuditFilter, page pawl.AuditPage) (pawl.AuditList, error) {
	key := fmt.Sprintf("audit %q %q %q %v %v", f.By, f.Action, f.Target, f.After.Truncate(10*time.Second), page)
	return cached(v, key, time.Second, func(ctx context.Context) (pawl.AuditList, error) { return v.app.e.Audit(ctx, f, page) })
}

func (d *auditData) items() []item {
	list := make([]item, len(d.Rows))
	for i := range d.Rows {
		list[i] = item{d.Rows[i].Element(), &d.Rows[i]}
	}
	return list
}

// targetLink is the page of what an entry is about; empty where there is none.
func (v *view) targetLink(e *pawl.AuditEntry) string {
	_, noun, _ := strings.Cut(e.Action, " ")
	_, isID := pawl.ParseID(e.Target)
	switch {
	case e.Target == "*" || e.Target == "" || strings.Contains(e.Action, " bulk "):
		return ""
	case strings.HasSuffix(noun, "schedule"):
		return v.app.link("/cron/{}", e.Target)
	case noun == "limit", e.Action == "drain":
		return v.app.link("/limits")
	case noun == "upkeep":
		return v.app.link("/services")
	case noun == "group":
		return v.app.link("/groups/{}", e.Target)
	case noun == "kind":
		return v.app.link("/jobs", "kind", e.Target)
	case isID == nil:
		return v.app.link("/jobs/{}", e.Target)
	case noun == "queue", e.Action == "pause", e.Action == "resume", e.Action == store.CoolDownAction:
		return v.app.link("/queues/{}", e.Target)
	}
	return ""
}

func writeAuditCursor(p store.AuditPosition) string {
	text, _ := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text)
}

func readAuditCursor(text string, p *store.AuditPosition) error {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(plain, p) != nil {
		return &fault{422, "This page cannot be found.", "Its address has a place in the list that cannot be read."}
	}
	return nil
}
