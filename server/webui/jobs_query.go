package webui

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// jobsQuery is which jobs a list shows: all of it is in the address.
type jobsQuery struct {
	View    string // of jobsViews
	Queue   string
	Kind    string
	Key     string
	Tag     string
	Worker  pawl.WorkerID
	Error   string // a fingerprint
	Text    string // within error text or arguments
	Created string // of createds
	Order   store.Order
	hidden  bool // arguments are hidden from who looks: text is not looked for in them
}

// jobsView is one of the views: a state as people see it.
type jobsView struct {
	Name, Text, State string // State is that of its glyph
	Title             string
	states            []pawl.State
	Path              string // under the prefix
	order             store.Order
}

// jobsViews are all of them, in their order.
var jobsViews = []jobsView{
	{Name: "", Text: "All", Title: "Jobs", Path: "/jobs"},
	{Name: "ready", Text: "Ready", State: "ready", Title: "Ready jobs", states: []pawl.State{job.Waiting}, Path: "/jobs"},
	{Name: "scheduled", Text: "Scheduled", State: "scheduled", Title: "Scheduled jobs", states: []pawl.State{job.Waiting},
		Path: "/jobs/scheduled", order: store.ByDue},
	{Name: "running", Text: "Running", State: "running", Title: "Running jobs", states: []pawl.State{job.Running}, Path: "/jobs"},
	{Name: "retries", Text: "Retries", State: "retrying", Title: "Retries", states: []pawl.State{job.Waiting}, Path: "/jobs/retries",
		order: store.ByDue},
	{Name: "suspended", Text: "Suspended", State: "suspended", Title: "Suspended jobs", states: []pawl.State{job.Suspended}, Path: "/jobs"},
	{Name: "done", Text: "Done", State: "done", Title: "Done jobs", states: []pawl.State{job.Done}, Path: "/jobs"},
	{Name: "dead", Text: "Dead", State: "dead", Title: "Dead jobs", states: []pawl.State{job.Dead}, Path: "/jobs/dead", order: store.ByFinish},
	{Name: "cancelled", Text: "Cancelled", State: "cancelled", Title: "Cancelled jobs", states: []pawl.State{job.Cancelled}, Path: "/jobs",
		order: store.ByFinish},
}

// createds are the bounds of the time of creation.
var createds = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}

var createdWords = map[string]string{"1h": "last hour", "24h": "last 24 h", "7d": "last 7 d", "30d": "last 30 d"}

func (q *jobsQuery) view() *jobsView {
	for i := range jobsViews {
		if jobsViews[i].Name == q.View {
			return &jobsViews[i]
		}
	}
	return &jobsViews[0]
}

// readJobs reads the query; what it does not know it leaves out, and a wrong value matches nothing.
func readJobs(path string, values url.Values) *jobsQuery {
	q := &jobsQuery{
		View: values.Get("state"), Queue: values.Get("queue"), Kind: values.Get("kind"), Key: values.Get("key"), Tag: values.Get("tag"),
		Error: values.Get("error"), Text: values.Get("q"), Created: values.Get("created"),
	}
	switch path {
	case "/jobs/scheduled", "/jobs/retries", "/jobs/dead":
		q.View = strings.TrimPrefix(path, "/jobs/")
	}
	if !slices.ContainsFunc(jobsViews, func(v jobsView) bool { return v.Name == q.View }) {
		q.View = ""
	}
	if n, err := strconv.ParseInt(values.Get("worker"), 10, 64); err == nil && n > 0 {
		q.Worker = pawl.WorkerID(n)
	}
	if _, ok := createds[q.Created]; !ok {
		q.Created = ""
	}
	if q.Text != "" && q.Created == "" {
		q.Created = "1h" // text is searched row by row
	}
	q.Order = q.view().order
	if values.Get("order") == "id" {
		q.Order = store.ByID
	}
	return q
}

// filter is for the engine.
func (q *jobsQuery) filter(now time.Time) pawl.Filter {
	f := pawl.Filter{Queue: q.Queue, Kind: q.Kind, Key: q.Key, Tag: q.Tag, Worker: q.Worker, Fingerprint: q.Error, States: q.view().states}
	switch q.View {
	case "ready":
		f.DueBefore = now
	case "scheduled":
		f.DueAfter = now
	}
	if q.Created != "" {
		f.CreatedAfter = now.Add(-createds[q.Created])
	}
	return f
}

// values are the query as an address has it, with its view.
func (q *jobsQuery) values() url.Values {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	for _, c := range q.chips() {
		set(c.Name, c.value)
	}
	if q.view().Path == "/jobs" {
		set("state", q.View)
	}
	if q.Order != q.view().order {
		set("order", "id")
	}
	return v
}

// address is of the list, under the prefix.
func (a *app) address(q *jobsQuery) string {
	text := a.link(q.view().Path)
	if v := q.values(); len(v) > 0 {
		text += "?" + v.Encode()
	}
	return text
}

// narrow reports whether anything but the view narrows the list.
func (q *jobsQuery) narrow() bool { return len(q.chips()) > 0 }

// only is the one kind or queue that a list is narrowed to, with nothing else but its view.
func (q *jobsQuery) only() (noun, name string) {
	bare := *q
	bare.View, bare.Order, bare.hidden = "", 0, false
	switch {
	case bare == jobsQuery{Kind: q.Kind} && q.Kind != "" && !strings.Contains(q.Kind, "*"):
		return "kind", q.Kind
	case bare == jobsQuery{Queue: q.Queue} && q.Queue != "":
		return "queue", q.Queue
	}
	return "", ""
}

// chip is one part of the query.
type chip struct {
	Name, Text string
	Without    string // address without it
	Count      string // of jobs without it, where none matches
	value      string
}

func (q *jobsQuery) chips() (list []chip) {
	add := func(name, value, text string) {
		if value != "" {
			list = append(list, chip{Name: name, Text: text, value: value})
		}
	}
	add("kind", q.Kind, q.Kind)
	add("queue", q.Queue, q.Queue)
	add("key", q.Key, q.Key)
	add("tag", q.Tag, q.Tag)
	if q.Worker > 0 {
		add("worker", strconv.FormatInt(int64(q.Worker), 10), strconv.FormatInt(int64(q.Worker), 10))
	}
	add("error", q.Error, q.Error)
	add("q", q.Text, q.Text)
	add("created", q.Created, createdWords[q.Created])
	return list
}

// without is the query but for one chip.
func (q *jobsQuery) without(name string) *jobsQuery {
	v := q.values()
	v.Del(name)
	return readJobs(q.view().Path, v)
}

// typed reads what somebody typed into the filter: kind:mail.* queue:mail and text. What was there before stays, unless it is named again.
func (q *jobsQuery) typed(text string) *jobsQuery {
	v := q.values()
	var rest []string
	for _, word := range words(text) {
		name, value, ok := strings.Cut(word, ":")
		switch {
		case ok && value != "" && slices.Contains([]string{"kind", "queue", "key", "tag", "worker", "error", "created"}, name):
			v.Set(name, value)
		case ok && name == "state":
			v.Set("state", value)
		case ok && name == "id" && value != "":
			v.Set("id", value)
		default:
			rest = append(rest, word)
		}
	}
	if len(rest) > 0 {
		v.Set("q", strings.Join(rest, " "))
	}
	path := q.view().Path
	if v.Get("state") != "" {
		path = "/jobs"
	}
	next := readJobs(path, v)
	if view := next.view(); view.Path != "/jobs" {
		next.View = view.Name
	}
	return next
}

// words splits at spaces, but not within quotes: key:"acme corp".
func words(text string) (list []string) {
	var b strings.Builder
	quoted := false
	flush := func() {
		if b.Len() > 0 {
			list = append(list, b.String())
			b.Reset()
		}
	}
	for _, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			flush()
		default:
			b.WriteRune(r)
		}
	}
	flush()
	return list
}

// place is where a page begins, as text for addresses.
func place(b pawl.Bookmark) string {
	text, err := json.Marshal(b)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func readPlace(text string) (b pawl.Bookmark) {
	if raw, err := base64.RawURLEncoding.DecodeString(text); err == nil {
		_ = json.Unmarshal(raw, &b) // the beginning, then
	}
	return b
}

// packIDs are ids as text for the address of a stream.
func packIDs(list []pawl.ID) string {
	var raw []byte
	for _, id := range list {
		raw = append(raw, id[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func unpackIDs(text string) (list []pawl.ID) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw)%16 != 0 || len(raw) > 16*maxRows {
		return nil
	}
	for id := range slices.Chunk(raw, 16) {
		list = append(list, pawl.ID(id))
	}
	return list
}

// maxRows is of one page.
const maxRows = 200
