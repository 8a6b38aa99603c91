package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/webui"
)

// configCommand prints the settings. It takes the flags of serve as well, so that what serve
// would do can be seen.
func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Print the effective settings and where each comes from", Args: counted(0, 0), RunE: func(cmd *cobra.Command, _ []string) error {
		v, err := a.resolve(cmd)
		if err != nil {
			return err
		}
		type entry struct {
			Name   string `json:"name"`
			Value  string `json:"value"`
			Source string `json:"source"`
			Env    string `json:"env"`
		}
		entries := make([]entry, 0, len(settings))
		t := newTable("name", "value", "from", "environment")
		for _, s := range settings {
			e := entry{s.name, shown(v[s.name]), v[s.name].source, s.env}
			entries = append(entries, e)
			t.row(e.Name, e.Value, e.Source, e.Env)
		}
		if a.json {
			return json.NewEncoder(a.out).Encode(map[string]any{"settings": entries})
		}
		return t.write(a.out)
	}}
	addSettings(cmd, true)
	return cmd
}

// shown are all settings that serve reads, for Mission Control.
func (v values) shown() (list []webui.Setting) {
	for _, s := range settings {
		if value := v[s.name]; value.source != "" {
			list = append(list, webui.Setting{Name: s.name, Value: shown(value), Source: value.source})
		}
	}
	return list
}

// shown is a value without secrets: of a store's address its scheme, or all of a file's.
func shown(v value) string {
	switch {
	case v.text == "" || !v.isSecret && v.name != setServer:
		return v.text
	case v.name == setServer:
		if _, err := checkServer(v.text); err != nil {
			return "(hidden: not an address)"
		}
		return v.text
	case v.name == setStore && strings.HasPrefix(v.text, "sqlite:"):
		return v.text
	case v.name == setStore:
		if scheme, _, ok := strings.Cut(v.text, ":"); ok && (scheme == "postgres" || scheme == "postgresql") {
			return scheme + ":(hidden)"
		}
	}
	return "(hidden)"
}
