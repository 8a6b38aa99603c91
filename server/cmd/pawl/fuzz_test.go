package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzSettings gives a file of settings. It is read, or refused by its name, and no secret of it is shown.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"", "namespace = \"x\"\n[serve]\nlisten = \"127.0.0.1:1\"\npprof = true\n", "store = \"postgres://ann:hunter2@db/work\"\n", "serve.queues = \"mail=40,default\"",
		"server = [1]\n", "[[serve]]\n", "serve = 1\n[serve]\n", "as = 2026-01-01\n", "as = \"\\u0000\"", "request_timeout = 1e999", "a.b.c.d = {x = [{}]}", "\xff", "token = \"hunter2\"",
	} {
		f.Add(text)
	}
	name := filepath.Join(f.TempDir(), "pawl.toml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, problems, code := within(t, nil, "--config", name, "config", "--json")
		if code != 0 {
			if code != 2 || out != "" || !strings.Contains(problems, "settings") && !strings.Contains(problems, "must be") {
				t.Errorf("%q: exit %d: %s%s", text, code, out, problems)
			}
			return
		}
		var list struct {
			Settings []struct{ Name, Value string }
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Errorf("%q: %v in %s", text, err, out)
		}
		for _, s := range list.Settings {
			if (s.Name == setStore || s.Name == setToken) && s.Value != "" && !strings.HasPrefix(s.Value, "sqlite:") && !strings.HasSuffix(s.Value, "(hidden)") {
				t.Errorf("%q: %s is shown: %s", text, s.Name, s.Value)
			}
		}
	})
}
