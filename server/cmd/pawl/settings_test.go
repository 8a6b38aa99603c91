package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeSettings(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pawl.toml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// effective is what pawl config says.
func effective(t *testing.T, env map[string]string, args ...string) map[string][2]string {
	t.Helper()
	out, problems, code := within(t, env, append([]string{"config", "--json"}, args...)...)
	var list struct {
		Settings []struct{ Name, Value, Source string }
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		t.Fatalf("%d: %v %s%s", code, err, out, problems)
	}
	m := map[string][2]string{}
	for _, s := range list.Settings {
		m[s.Name] = [2]string{s.Value, s.Source}
	}
	return m
}

func TestU1_AFlagCountsBeforeTheEnvironmentBeforeTheFile(t *testing.T) {
	file := writeSettings(t, "namespace = \"of-file\"\nrequest_timeout = \"7s\"\nas = \"file\"\n[serve]\nlisten = \"127.0.0.1:1\"\npprof = true\n")
	env := map[string]string{"PAWL_CONFIG": file, "PAWL_NAMESPACE": "of-env", "PAWL_LISTEN": "127.0.0.1:2", "PAWL_AS": "env", "PAWL_GRACE": ""}
	got := effective(t, env, "--listen", "127.0.0.1:3", "--as", "flag", "--work=false")
	for name, want := range map[string][2]string{
		"namespace": {"of-env", "environment PAWL_NAMESPACE"}, "request_timeout": {"7s", "file " + file}, "as": {"flag", "flag --as"},
		"serve.listen": {"127.0.0.1:3", "flag --listen"}, "serve.pprof": {"true", "file " + file}, "serve.work": {"false", "flag --work"},
		"serve.grace": {"20s", "default"}, "server": {"", "default"},
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if got := effective(t, map[string]string{"PAWL_CONFIG": "nowhere"}, "--config", file); got["request_timeout"][0] != "7s" {
		t.Error(got)
	}
}

func TestU1_ConfigShowsNoSecret(t *testing.T) {
	env := map[string]string{"PAWL_TOKEN": "hunter2", "PAWL_STORE": "postgres://ann:hunter2@db/work?sslpassword=hunter2"}
	for _, args := range [][]string{{"config"}, {"config", "--json"}} {
		for _, more := range []map[string]string{{}, {"PAWL_STORE": "hunter2"}, {"PAWL_STORE": "hunter2:x"}, {"PAWL_SERVER": "http://ann:hunter2@x"}} {
			for name, text := range env {
				if more[name] == "" {
					more[name] = text
				}
			}
			if out, problems, code := within(t, more, args...); code != 0 || strings.Contains(out+problems, "hunter2") {
				t.Errorf("%v: %d: %s%s", more, code, out, problems)
			}
		}
	}
	got := effective(t, env)
	if got["store"] != [2]string{"postgres:(hidden)", "environment PAWL_STORE"} || got["token"][0] != "(hidden)" {
		t.Error(got["store"], got["token"])
	}
	if got := effective(t, map[string]string{"PAWL_STORE": "sqlite:work.db"}); got["store"][0] != "sqlite:work.db" {
		t.Error(got["store"])
	}
}

func TestU1_AFaultOfTheFileIsNamed(t *testing.T) {
	for _, c := range []struct{ text, word string }{
		{"colour = 1\n", "colour is not known"}, {"[serve]\ncolour = 1\n", "serve.colour is not known"}, {"token = \"hunter2\"\n", "PAWL_TOKEN only"},
		{"server = [1]\n", "must be a text"}, {"server = \n", "line 1"}, {"[serve]\npprof = \"perhaps\"\n", "must be true or false"},
	} {
		refuses(t, 2, c.word, nil, "--config", writeSettings(t, c.text), "config")
	}
	refuses(t, 2, "no such file", nil, "--config", filepath.Join(t.TempDir(), "none.toml"), "job", "list")
	refuses(t, 2, "true or false", map[string]string{"PAWL_PPROF": "perhaps"}, "serve")
	refuses(t, 2, "serve.grace", map[string]string{"PAWL_GRACE": "-1s"}, "serve")
	refuses(t, 2, "serve.queues", map[string]string{"PAWL_QUEUES": "mail=many"}, "serve")
}

// All that is wrong comes at once, each on a line of its own: names that are not known, values, and what serve does not take.
func TestU1_FaultsOfTheSettingsComeAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	file := writeSettings(t, "colour = 1\nrequest_timeout = \"soon\"\n[serve]\npprof = \"perhaps\"\ngrace = \"-1s\"\nqueues = \"mail=many\"\n"+
		"listen = \"0.0.0.0:0\"\ntls_cert = \"cert.pem\"\nhosts = \"a/b\"\n")
	out, problems, code := within(t, nil, "--config", file, "serve")
	words := []string{"colour is not known", "request_timeout", "serve.pprof", "serve.queues", "serve.grace", "token file", "TLS", "host"}
	lines := strings.Split(strings.TrimSpace(problems), "\n")
	for i, word := range words {
		if len(lines) != len(words) || !strings.HasPrefix(lines[i], "pawl: ") || !strings.Contains(lines[i], word) {
			t.Fatalf("line %d of %d, want %q:\n%s%s", i+1, len(lines), word, out, problems)
		}
	}
	if code != 2 || out != "" {
		t.Errorf("exit %d: %s", code, out)
	}
	out, problems, code = within(t, nil, "--config", file, "config", "--json") // what only serve refuses is no fault of the settings
	if code != 2 || out != "" || !strings.Contains(problems, "serve.grace") || strings.Contains(problems, "token file") {
		t.Errorf("exit %d: %s%s", code, out, problems)
	}
}

func TestU1_OtherAddressesThanLoopbackNeedTokens(t *testing.T) {
	t.Chdir(t.TempDir())
	refuses(t, 2, "token file", nil, "serve", "--listen", "0.0.0.0:0", "--work=false")
	if _, err := os.Stat(defaultFile); !os.IsNotExist(err) {
		t.Errorf("a store was made for a server that is refused: %v", err)
	}
	refuses(t, 1, "no such file", nil, "serve", "--listen", "0.0.0.0:0", "--tokens", "nowhere", "--work=false")
}
