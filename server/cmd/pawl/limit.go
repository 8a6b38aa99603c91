package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// limitFields can be set of a limit.
var limitFields = []field{
	{"queue", "`name`: the jobs of this queue", nil},
	{"kind", "`name`: the jobs of this kind, or of those that a pattern names", nil},
	{"per_key", "`true`: bound each key by itself", asBool},
	{"concurrent", "`number` that run at once in the cluster, or of each key; -1: no bound", asInt},
	{"ordered", "`true`: keep the jobs of a key in order", asBool},
	{"weights", "`key=weight,…`: how much more often than others a key is served", asPairs(asInt)},
	{"burst", "`number` of tokens that a full bucket holds", asInt},
	{"per_second", "`number` of tokens that come in a second; -1: no bound", asFloat},
}

// limitCommand has the verbs of limits.
func (a *app) limitCommand() *cobra.Command {
	drain := a.verb("drain NAME", "Empty a limit's bucket for a time", counted(1, 1), (*call).limitDrain)
	drain.Flags().String("for", "", "`time`, a day at most")
	drain.Flags().String("key", "", "`key` of a limit that is per key")
	undrain := a.verb("undrain NAME", "End a drain before its time", counted(1, 1), (*call).limitUndrain)
	undrain.Flags().String("key", "", "`key` of a limit that is per key")
	acquire := a.verb("acquire NAME", "Take tokens of a limit's rate; 1 when they do not come in time", counted(1, 1), (*call).limitAcquire)
	acquire.Flags().Int("tokens", 1, "how many")
	acquire.Flags().String("wait", "1s", "`time` to wait for them at most")
	acquire.Flags().String("key", "", "`key` of a limit that is per key")
	keyFlag(acquire, "`key`: a repetition within 24 hours takes nothing more, as long as the server runs")
	return group("limit", "Limits: how many run at once, and rates", "",
		pageFlags(a.verb("list", "List limits", counted(0, 0), (*call).limitList), 1000),
		a.verb("get NAME", "Show a limit: what holds, and where it comes from", counted(1, 1), func(c *call) error {
			return c.shown(request{method: http.MethodGet, path: "/limits/" + url.PathEscape(c.args[0])}, showLimit)
		}),
		a.setCommand("/limits/", "Put settings over what code declares for a limit, or make one that none declares", limitFields, showLimit),
		a.resetCommand("/limits/", limitFields, showLimit), drain, undrain, acquire,
	)
}

func (c *call) limitList() error {
	t := newTable("limit", "settings", "declared by", "set by")
	return pages(c, "/limits", nil, t, func(l *httpapi.LimitList) string {
		for i := range l.Limits {
			l := &l.Limits[i]
			t.row(l.Name, settingsText(l.Holds), l.Owner, l.By)
		}
		return l.Next
	})
}

func showLimit(c *call, text []byte) error {
	var l httpapi.Limit
	if err := decode(text, &l); err != nil {
		return err
	}
	p := &pairs{}
	p.add("limit", l.Name)
	c.sourcePairs(p, settingsText(l.Holds), settingsText(l.Declared), &l.Source)
	return p.write(c.out)
}

func (c *call) limitDrain() error {
	span := c.flag("for")
	if span == "" {
		return usage("--for: must be a time such as 30s, a day at most")
	}
	body := map[string]string{"for": span}
	if key := c.flag("key"); key != "" {
		body["key"] = key
	}
	if _, err := c.post("/limits/"+url.PathEscape(c.args[0])+"/drain", body, nil); err != nil {
		return err
	}
	return c.tellDone(drained{c.args[0], c.flag("key"), true, span}, "drained for %s", span)
}

// drained is what scripts are told of a limit that was drained, or is not any more.
type drained struct {
	Name    string `json:"name"`
	Key     string `json:"key,omitempty"`
	Drained bool   `json:"drained"`
	For     string `json:"for,omitempty"`
}

func (c *call) limitUndrain() error {
	q := request{method: http.MethodPost, path: "/limits/" + url.PathEscape(c.args[0]) + "/undrain", query: c.parameters("key")}
	if _, err := c.api.do(c.ctx, q); err != nil {
		return err
	}
	return c.tellDone(drained{Name: c.args[0], Key: c.flag("key")}, "tokens come again")
}

func (c *call) limitAcquire() error {
	body := map[string]any{"tokens": c.number("tokens"), "wait": c.flag("wait")}
	if key := c.flag("key"); key != "" {
		body["key"] = key
	}
	q := request{
		method: http.MethodPost, path: "/limits/" + url.PathEscape(c.args[0]) + "/acquire", body: body, wait: longestWait, headers: c.keyHeader(),
	}
	return c.shown(q, func(c *call, text []byte) error {
		var taken httpapi.Acquired
		if err := decode(text, &taken); err != nil {
			return err
		}
		c.print("%d", taken.Tokens)
		return nil
	})
}
