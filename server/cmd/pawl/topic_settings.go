package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// topicFields can be set of a topic.
var topicFields = []field{
	{"versioned", "`true`: its keys have versions, from now on and for good", asBool},
	{"keep_for", "`time` after its append for which an event is kept, such as 720h; none: for ever", nil},
	{"keep_count", "`number` of the newest events that are kept; -1: all", asInt},
}

// topicSettingCommands look at topics and set what holds for them.
func (a *app) topicSettingCommands() []*cobra.Command {
	return []*cobra.Command{
		a.verb("show TOPIC", "Show a topic: what it keeps, and where that comes from; of a pattern, what is said for it", counted(1, 1), func(c *call) error {
			if strings.ContainsAny(c.args[0], "*>") {
				return c.shown(request{method: http.MethodGet, path: "/topics/" + url.PathEscape(c.args[0]) + "/settings"}, showTopicSettings)
			}
			return c.shown(request{method: http.MethodGet, path: "/topics/" + url.PathEscape(c.args[0])}, showTopic)
		}),
		a.setCommand("/topics/", "Put settings over what code declares for a topic, or for a pattern such as orders.*", topicFields, showTopicSettings),
		a.resetCommand("/topics/", topicFields, showTopicSettings),
	}
}

func showTopic(c *call, text []byte) error {
	var t httpapi.TopicStatus
	if err := decode(text, &t); err != nil {
		return err
	}
	p := &pairs{}
	p.add("topic", t.Name)
	p.add("newest event", c.when(t.Newest))
	if t.Versioned {
		p.add("versions", "of each key")
	}
	p.number("delayed", int64(t.Delayed))
	p.number("kept", t.Kept)
	p.add("trimmed to", t.TrimmedTo)
	s := &t.Settings
	c.sourcePairs(p, settingsText(s.Holds), settingsText(s.Declared), &s.Source)
	return p.write(c.out)
}

func showTopicSettings(c *call, text []byte) error {
	var t httpapi.EffectiveTopic
	if err := decode(text, &t); err != nil {
		return err
	}
	p := &pairs{}
	p.add("topic", t.Name)
	c.sourcePairs(p, settingsText(t.Holds), settingsText(t.Declared), &t.Source)
	return p.write(c.out)
}
