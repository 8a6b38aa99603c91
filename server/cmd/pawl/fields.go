package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// field is one of those that can be set of a queue, a limit or a schedule, as the API calls
// it: backoff.base is base within backoff. Its flag has dashes.
type field struct {
	name, is string
	read     func(string) (any, error) // [a text]
}

func (f field) flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(f.name) }

// What a field is read as.
func asInt(text string) (any, error) {
	n, err := strconv.Atoi(text)
	return n, says(err, "must be a whole number")
}

func asFloat(text string) (any, error) {
	n, err := strconv.ParseFloat(text, 64)
	return n, says(err, "must be a number")
}

func asBool(text string) (any, error) {
	on, err := strconv.ParseBool(text)
	return on, says(err, "must be true or false")
}

func asList(text string) (any, error) { return strings.Split(text, ","), nil }

// says puts an error into words for people.
func says(err error, text string) error {
	if err == nil {
		return nil
	}
	return errors.New(text)
}

func asJSON(text string) (any, error) {
	var v json.RawMessage
	err := json.Unmarshal([]byte(text), &v)
	return v, err
}

// asPairs reads a=1,b=2.
func asPairs(value func(string) (any, error)) func(string) (any, error) {
	return func(text string) (any, error) {
		m := map[string]any{}
		for part := range strings.SplitSeq(text, ",") {
			name, rest, ok := strings.Cut(part, "=")
			if !ok {
				return nil, fmt.Errorf("%q must be name=value", part)
			}
			v, err := value(rest)
			if err != nil {
				return nil, err
			}
			m[name] = v
		}
		return m, nil
	}
}

func asText(text string) (any, error) { return text, nil }

func fieldFlags(cmd *cobra.Command, fields []field) *cobra.Command {
	for _, f := range fields {
		cmd.Flags().String(f.flag(), "", f.is)
	}
	return cmd
}

// fieldsGiven are those that were given, as the body of a change.
func (c *call) fieldsGiven(fields []field) (map[string]any, error) {
	body := map[string]any{}
	for _, f := range fields {
		if !c.given(f.flag()) {
			continue
		}
		read := f.read
		if read == nil {
			read = asText
		}
		v, err := read(c.flag(f.flag()))
		if err != nil {
			return nil, usage("--%s %q: %w", f.flag(), c.flag(f.flag()), err)
		}
		outer, inner, nested := strings.Cut(f.name, ".")
		if !nested {
			body[f.name] = v
			continue
		}
		below, _ := body[outer].(map[string]any)
		if below == nil {
			below = map[string]any{}
			body[outer] = below
		}
		below[inner] = v
	}
	return body, nil
}

// setCommand puts settings over what code declares for something below path.
func (a *app) setCommand(path, short string, fields []field, show func(*call, []byte) error) *cobra.Command {
	return fieldFlags(a.verb("set NAME", short, counted(1, 1), func(c *call) error {
		body, err := c.fieldsGiven(fields)
		if err != nil {
			return err
		}
		if len(body) == 0 {
			return usage("%s: nothing to set; see %s --help", c.cmd.CommandPath(), c.cmd.CommandPath())
		}
		return c.shown(request{method: http.MethodPatch, path: path + url.PathEscape(c.args[0]) + "/settings", body: body}, show)
	}), fields)
}

// resetCommand takes back what was set.
func (a *app) resetCommand(path string, fields []field, show func(*call, []byte) error) *cobra.Command {
	var names []string
	for _, f := range fields {
		if name, _, _ := strings.Cut(f.name, "."); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	cmd := a.verb("reset NAME", "Take back what was set, or some fields of it", counted(1, 1), func(c *call) error {
		q := request{method: http.MethodDelete, path: path + url.PathEscape(c.args[0]) + "/settings"}
		if text := c.flag("field"); text != "" {
			q.query = url.Values{"field": {text}}
		}
		return c.shown(q, show)
	})
	cmd.Flags().String("field", "", "`fields`, with commas: "+strings.Join(names, ", ")+" [all]")
	return cmd
}

// shown sends a request and shows its answer: as JSON, or as show does.
func (c *call) shown(q request, show func(*call, []byte) error) error {
	text, err := c.api.do(c.ctx, q)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(text)
	}
	return show(c, text)
}

// eachVerb is a verb that posts to every name below path.
func (a *app) eachVerb(verb, short, path, done string) *cobra.Command {
	return a.verb(verb+" NAME…", short, counted(1, -1), func(c *call) error {
		return c.each(c.args, func(name string) error {
			var answer struct{ Pause *httpapi.Pause }
			printed, err := c.post(path+url.PathEscape(name)+"/"+verb, nil, &answer)
			if printed || err != nil {
				return err
			}
			c.print("%s  %s", clean(name), c.pausedText(verb, done, answer.Pause))
			return nil
		})
	})
}

// settingsText is what holds, in one line: its fields by name.
func settingsText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return string(raw)
	}
	var parts []string
	for name, value := range sorted(m) {
		text := string(value)
		var plain string
		if json.Unmarshal(value, &plain) == nil {
			text = plain
		}
		parts = append(parts, name+"="+text)
	}
	return strings.Join(parts, " ")
}
