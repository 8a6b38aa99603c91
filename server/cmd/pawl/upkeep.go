package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// longestWait is how long a server waits at most.
const longestWait = time.Minute

// upkeepCommand has the verbs of upkeep.
func (a *app) upkeepCommand() *cobra.Command {
	set := a.verb("set ROUND", "Set how often a round is done, in the whole cluster", counted(1, 1), (*call).upkeepSet)
	set.Flags().String("every", "", "`time`, 100ms to 24h, or default")
	return group("upkeep", "Upkeep: the rounds that keep a store in order", "",
		a.verb("list", "List the rounds, and how often operators want them done", counted(0, 0), (*call).upkeepList),
		a.verb("get ROUND", "Show how often operators want a round done", counted(1, 1), func(c *call) error {
			return c.shown(request{method: http.MethodGet, path: "/upkeep/" + url.PathEscape(c.args[0])}, showUpkeep)
		}),
		a.verb("run ROUND…", "Run rounds now; every process that runs does them by itself", counted(1, -1), (*call).upkeepRun), set,
	)
}

func upkeepRow(c *call, t *table, u *httpapi.Upkeep) {
	every := u.Every
	if every == "" {
		every = "default"
	}
	t.row(u.Round, every, u.By, u.Note, c.when(u.Since))
}

func upkeepTable() *table { return newTable("round", "every", "by", "note", "since") }

func (c *call) upkeepList() error {
	var l httpapi.UpkeepList
	if done, err := c.read("/upkeep", nil, &l); done || err != nil {
		return err
	}
	t := upkeepTable()
	for i := range l.Rounds {
		upkeepRow(c, t, &l.Rounds[i])
	}
	return t.write(c.out)
}

func showUpkeep(c *call, text []byte) error {
	var u httpapi.Upkeep
	if err := decode(text, &u); err != nil {
		return err
	}
	t := upkeepTable()
	upkeepRow(c, t, &u)
	return t.write(c.out)
}

func (c *call) upkeepSet() error {
	body := map[string]string{"every": c.flag("every")}
	return c.shown(request{method: http.MethodPut, path: "/upkeep/" + url.PathEscape(c.args[0]), body: body}, showUpkeep)
}

func (c *call) upkeepRun() error {
	return c.each(c.args, func(round string) error {
		var r httpapi.UpkeepReport
		if done, err := c.post("/upkeep/"+url.PathEscape(round), nil, &r); done || err != nil {
			return err
		}
		var did []string
		for _, d := range r.Did {
			did = append(did, fmt.Sprintf("%s %d", d.What, d.N))
		}
		if len(did) == 0 {
			did = []string{"there was nothing to do"}
		}
		if r.More {
			did = append(did, "there is more")
		}
		c.print("%s: %s", r.Round, clean(strings.Join(did, ", ")))
		return nil
	})
}
