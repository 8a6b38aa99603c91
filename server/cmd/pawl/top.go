package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// topEvery is how often the view asks anew.
const topEvery = time.Second

// topCommand is a live view: queues, the jobs of one, one job.
func (a *app) topCommand() *cobra.Command {
	return a.verb("top", "A live view of queues and jobs, with keys to look closer, pause and retry", counted(0, 0), func(c *call) error {
		if out, ok := c.out.(*os.File); !ok || !isTerminal(out) || c.json {
			return usage("top: needs a terminal; scripts use pawl queue list --json")
		}
		_, err := tea.NewProgram(&top{call: c}, tea.WithContext(c.ctx), tea.WithInput(c.in), tea.WithOutput(c.out)).Run()
		if errors.Is(err, tea.ErrInterrupted) || c.ctx.Err() != nil {
			return nil // that is how one leaves it, too
		}
		return err
	})
}

// The screens, each below the one before it.
const (
	topQueues = iota
	topJobs
	topJob
)

// top is what is shown. Entries are chosen by name, so that a list that moves does not put
// another one under the cursor.
type top struct {
	*call
	screen        int
	chosen        [3]string // of each screen
	queues        []httpapi.Queue
	jobs          []httpapi.Job
	job           httpapi.Job
	problem       error
	said          string
	width, height int
}

// topLoaded is what the API said for a screen, while that was the one.
type topLoaded struct {
	screen int
	of     string
	queues []httpapi.Queue
	jobs   []httpapi.Job
	job    httpapi.Job
	err    error
}

// topSaid is what became of a key.
type topSaid struct {
	text string
	err  error
}

type topTick struct{}

// Init asks for the first time.
func (m *top) Init() tea.Cmd { return tea.Batch(m.load(), m.tick()) }

func (m *top) tick() tea.Cmd { return tea.Tick(topEvery, func(time.Time) tea.Msg { return topTick{} }) }

// of is what the screen is about: the entry that was chosen on the one before.
func (m *top) of() string {
	if m.screen == topQueues {
		return ""
	}
	return m.chosen[m.screen-1]
}

// load asks the API for what the screen shows.
func (m *top) load() tea.Cmd {
	l := topLoaded{screen: m.screen, of: m.of()}
	return func() tea.Msg {
		switch l.screen {
		case topQueues:
			var list httpapi.QueueList
			_, l.err = m.api.get(m.ctx, "/queues", url.Values{"limit": {"1000"}}, &list)
			l.queues = list.Queues
		case topJobs:
			var list httpapi.JobList
			_, l.err = m.api.get(m.ctx, "/jobs", url.Values{"queue": {l.of}, "limit": {"100"}}, &list)
			l.jobs = list.Jobs
		case topJob:
			_, l.err = m.api.get(m.ctx, "/jobs/"+url.PathEscape(l.of), nil, &l.job)
		}
		return l
	}
}

// Update takes what happened.
func (m *top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case topTick:
		return m, tea.Batch(m.load(), m.tick())
	case topLoaded:
		m.take(&msg)
	case topSaid:
		if m.said = msg.text; msg.err != nil {
			m.said = message(msg.err)
		}
		return m, m.load()
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *top) take(l *topLoaded) {
	if l.screen != m.screen || l.of != m.of() {
		return // it came too late
	}
	if m.problem = l.err; l.err != nil {
		return
	}
	m.queues, m.jobs, m.job = l.queues, l.jobs, l.job
	if names := m.names(); len(names) > 0 && m.at() < 0 {
		m.chosen[m.screen] = names[0]
	}
}

// names are the entries of the screen.
func (m *top) names() (names []string) {
	switch m.screen {
	case topQueues:
		for i := range m.queues {
			names = append(names, m.queues[i].Name)
		}
	case topJobs:
		for i := range m.jobs {
			names = append(names, m.jobs[i].ID)
		}
	}
	return names
}

// at is where the chosen entry stands; -1: it is gone.
func (m *top) at() int {
	for i, name := range m.names() {
		if name == m.chosen[m.screen] {
			return i
		}
	}
	return -1
}

// key does what a key is for.
func (m *top) key(key string) tea.Cmd {
	m.said = ""
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-10)
	case "pgdown":
		m.move(10)
	case "enter", "right", "l":
		if m.screen < topJob && m.at() >= 0 {
			m.screen++
			m.chosen[m.screen], m.jobs, m.job = "", nil, httpapi.Job{}
			return m.load()
		}
	case "esc", "left", "h", "backspace":
		if m.screen > topQueues {
			m.screen--
			return m.load()
		}
	case "p":
		return m.pause()
	case "r", "c", "n":
		return m.change(map[string]string{"r": "retry", "c": "cancel", "n": "run"}[key])
	}
	return nil
}

func (m *top) move(by int) {
	if names := m.names(); len(names) > 0 {
		m.chosen[m.screen] = names[min(max(m.at()+by, 0), len(names)-1)]
	}
}

// pause pauses the chosen queue, or resumes it.
func (m *top) pause() tea.Cmd {
	at := m.at()
	if m.screen != topQueues || at < 0 {
		return nil
	}
	q, verb := &m.queues[at], "pause"
	if q.Pause != nil && q.Pause.Scope == "queue" {
		verb = "resume"
	}
	return m.post("/queues/"+url.PathEscape(q.Name)+"/"+verb, q.Name+": "+verb+"d")
}

// change does a verb to the chosen job.
func (m *top) change(verb string) tea.Cmd {
	id := m.of()
	if m.screen == topJobs && m.at() >= 0 {
		id = m.chosen[topJobs]
	} else if m.screen != topJob {
		return nil
	}
	return m.post("/jobs/"+url.PathEscape(id)+"/"+verb, verb)
}

func (m *top) post(path, done string) tea.Cmd {
	return func() tea.Msg {
		var changed httpapi.Changed
		text, err := m.api.do(m.ctx, request{method: http.MethodPost, path: path})
		if err == nil && decode(text, &changed) == nil && changed.Change != "" {
			done += ": " + changes[changed.Change]
		}
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return topSaid{done, err}
	}
}

// View is the screen.
func (m *top) View() tea.View {
	lines := []string{fmt.Sprintf("pawl top  %s  %s  %s", m.api.where, m.title(), m.now().In(m.zone).Format("15:04:05")), ""}
	lines = append(lines, m.body()...)
	said := m.said
	if m.problem != nil {
		said = message(m.problem)
	}
	keys := [...]string{"enter jobs  p pause or resume  ↑↓ choose  q quit", "enter look  r retry  c cancel  n run now  esc back  q quit", "r retry  c cancel  n run now  esc back  q quit"}
	lines = append(lines, "", clean(said), keys[m.screen])
	for i, line := range lines {
		if r := []rune(line); m.width > 0 && len(r) > m.width {
			lines[i] = string(r[:m.width])
		}
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

func (m *top) title() string {
	return clean(strings.TrimSpace([...]string{"queues", "jobs of", "job"}[m.screen] + " " + m.of()))
}

// body is the entries that fit, around the chosen one.
func (m *top) body() []string {
	var b strings.Builder
	if m.screen == topJob {
		if m.job.ID == "" {
			return nil
		}
		inner := *m.call
		shown := *m.app
		shown.out = &b
		inner.app = &shown
		_ = inner.jobShow(&m.job) // into memory
		return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	}
	_ = m.table().write(&b)
	rows := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	head, rows := rows[0], rows[1:]
	at, room := m.at(), max(m.height-7, 1)
	from := max(min(at-room/2, len(rows)-room), 0)
	out := []string{"  " + head}
	for i := from; i < min(from+room, len(rows)); i++ {
		mark := "  "
		if i == at {
			mark = "> "
		}
		out = append(out, mark+rows[i])
	}
	return out
}

func (m *top) table() *table {
	if m.screen == topQueues {
		t := newTable("queue", "ready", "scheduled", "retries", "running", "slots", "workers", "oldest ready", "held up")
		for i := range m.queues {
			q := &m.queues[i]
			t.row(q.Name, many(q.Ready), many(q.Scheduled), many(q.Retries), many(q.Running), q.Slots, q.Workers, m.when(q.OldestReady), m.heldUp(q))
		}
		return t
	}
	t := newTable("id", "state", "kind", "attempt", "when", "reason")
	for i := range m.jobs {
		j := &m.jobs[i]
		t.row(j.ID, j.State, j.Kind, attemptText(j, "/"), m.jobWhen(j), j.Reason)
	}
	return t
}
