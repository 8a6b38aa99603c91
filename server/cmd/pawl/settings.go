package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
)

// setting is a value that comes from a flag, else from the environment, else from the
// file of settings, else is the default.
type setting struct {
	name     string // with serve. before it where only serve reads it
	flag     string // without one it is a secret: arguments can be read by everybody
	env      string
	initial  string
	is       string
	isBool   bool
	envOnly  bool // not in the file of settings
	isSecret bool
	check    func(text string) error // says what it must be [anything]
}

// isTime is the check of a time.
func isTime(text string) error {
	if d, err := time.ParseDuration(text); err != nil || d <= 0 {
		return errors.New("must be a time such as 30s")
	}
	return nil
}

// isQueues is the check of queues with their workers.
func isQueues(text string) error {
	_, err := readQueues(text)
	return err
}

// The names of settings.
const (
	setServer, setStore, setStoreFile, setToken, setTokenFile = "server", "store", "store_file", "token", "token_file"
	setNamespace, setAs, setTimeout                           = "namespace", "as", "request_timeout"
	setListen, setTokens, setTLSCert, setTLSKey               = "serve.listen", "serve.tokens", "serve.tls_cert", "serve.tls_key"
	setHide, setPprof, setWork, setGrace, setMigrate          = "serve.hide_payloads", "serve.pprof", "serve.work", "serve.grace", "serve.migrate"
	setQueues, setHosts                                       = "serve.queues", "serve.hosts"
)

const (
	defaultServer = "http://127.0.0.1:7340"
	defaultListen = "127.0.0.1:7340"
	defaultFile   = "pawl.db"
)

var settings = []setting{
	{name: setServer, flag: "server", env: "PAWL_SERVER", is: "`address` of a server to ask [" + defaultServer + ", unless there is a store]"},
	{name: setStore, env: "PAWL_STORE", is: "connection string of a store to ask instead, such as sqlite:work.db or postgres://…", isSecret: true},
	{name: setStoreFile, flag: "store-file", env: "PAWL_STORE_FILE", is: "`file` of a SQLite store to ask instead"},
	{name: setToken, env: "PAWL_TOKEN", is: "token to show to the server", isSecret: true, envOnly: true},
	{name: setTokenFile, flag: "token-file", env: "PAWL_TOKEN_FILE", is: "`file` with the token to show to the server"},
	{name: setNamespace, flag: "namespace", env: "PAWL_NAMESPACE", initial: "default", is: "`name` of the namespace of a store"},
	{name: setAs, flag: "as", env: "PAWL_AS", is: "`name` in the audit log of a store [the user's]"},
	{name: setTimeout, flag: "request-timeout", env: "PAWL_REQUEST_TIMEOUT", initial: "30s", check: isTime, is: "`time` that an answer may take"},

	{name: setListen, flag: "listen", env: "PAWL_LISTEN", initial: defaultListen, is: "`address` to listen on; other than loopback needs tokens"},
	{name: setTokens, flag: "tokens", env: "PAWL_TOKENS", is: "`file` with the tokens that the server accepts"},
	{name: setHosts, flag: "hosts", env: "PAWL_HOSTS", is: "`names` by which it is called from outside, with commas [any, where tokens are needed]"},
	{name: setTLSCert, flag: "tls-cert", env: "PAWL_TLS_CERT", is: "`file` with the certificate"},
	{name: setTLSKey, flag: "tls-key", env: "PAWL_TLS_KEY", is: "`file` with the certificate's key"},
	{name: setHide, flag: "hide-payloads", env: "PAWL_HIDE_PAYLOADS", initial: "false", is: "keep payloads, results and logs from viewers", isBool: true},
	{name: setPprof, flag: "pprof", env: "PAWL_PPROF", initial: "false", is: "serve profiles of the process to admins", isBool: true},
	{name: setWork, flag: "work", env: "PAWL_WORK", initial: "true", is: "work on queues and do the upkeep, not only serve", isBool: true},
	{name: setQueues, flag: "queues", env: "PAWL_QUEUES", initial: "default", check: isQueues,
		is: "`names` of queues to work on, with workers: mail=40,default"},
	{name: setGrace, flag: "grace", env: "PAWL_GRACE", initial: "20s", is: "`time` that jobs may go on when it stops", check: isTime},
	{name: setMigrate, flag: "migrate", env: "PAWL_MIGRATE", initial: "false", is: "bring an older schema up to date; a new store is always made", isBool: true},
}

// envConfig names the file of settings.
const envConfig = "PAWL_CONFIG"

// addSettings gives a command the flags of settings: all, or those that only serve reads.
func addSettings(cmd *cobra.Command, ofServe bool) {
	flags := cmd.PersistentFlags()
	if ofServe {
		flags = cmd.Flags()
	}
	for _, s := range settings {
		switch {
		case s.flag == "" || strings.HasPrefix(s.name, "serve.") != ofServe:
		case s.isBool:
			on, _ := strconv.ParseBool(s.initial)
			flags.Bool(s.flag, on, s.is)
		default:
			flags.String(s.flag, s.initial, s.is)
		}
	}
}

// value is a setting with what it is and where that comes from.
type value struct {
	setting
	text   string
	rank   int // of its source
	source string
}

// Where a value comes from: the higher counts.
const (
	byDefault = iota
	byFile
	byEnv
	byFlag
)

// values are the effective settings by name.
type values map[string]value

func (v values) text(name string) string { return v[name].text }

// on is the value of a setting that is true or false; resolve has checked it.
func (v values) on(name string) bool {
	on, _ := strconv.ParseBool(v[name].text)
	return on
}

// resolve finds out what holds for a command. Every fault is reported at once, of the file and of what it says; the values
// come with it, for who looks for more.
func (a *app) resolve(cmd *cobra.Command) (values, error) {
	out := values{}
	file, name, err := a.readFile(cmd)
	faults := []error{err}
	for _, s := range settings {
		v := value{setting: s, text: s.initial, source: "default"}
		if text, ok := file[s.name]; ok {
			v.text, v.rank, v.source = text, byFile, "file "+name
		}
		if text, ok := a.env(s.env); ok && text != "" {
			v.text, v.rank, v.source = text, byEnv, "environment "+s.env
		}
		if f := cmd.Flags().Lookup(s.flag); s.flag != "" && f != nil && f.Changed {
			v.text, v.rank, v.source = f.Value.String(), byFlag, "flag --"+s.flag
		}
		if _, err := strconv.ParseBool(v.text); s.isBool && err != nil {
			faults = append(faults, fmt.Errorf("%s %q (%s): must be true or false", s.name, v.text, v.source))
		}
		if s.check != nil {
			if err := s.check(v.text); err != nil {
				faults = append(faults, fmt.Errorf("%s %q (%s): %w", s.name, v.text, v.source, err))
			}
		}
		out[s.name] = v
	}
	if err := errors.Join(faults...); err != nil {
		return out, usage("%w", err)
	}
	return out, nil
}

// readFile reads the file of settings, if one is named. What can be read of it comes with its faults.
func (a *app) readFile(cmd *cobra.Command) (file map[string]string, name string, err error) {
	name, _ = cmd.Flags().GetString("config")
	if name == "" {
		name, _ = a.env(envConfig)
	}
	if name == "" {
		return nil, "", nil
	}
	var tree map[string]any
	if _, err := toml.DecodeFile(name, &tree); err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			return nil, name, fmt.Errorf("settings: %w", err)
		}
		return nil, name, fmt.Errorf("settings %s: %w", name, err)
	}
	file = map[string]string{}
	var faults []error
	flatten("", tree, func(key string, v any) {
		at := slices.IndexFunc(settings, func(s setting) bool { return s.name == key })
		switch v := v.(type) {
		case string:
			file[key] = v
		case bool, int64:
			file[key] = fmt.Sprint(v)
		default:
			faults = append(faults, fmt.Errorf("settings %s: %s: must be a text, a number, true or false", name, key))
		}
		switch {
		case at < 0:
			faults = append(faults, fmt.Errorf("settings %s: %s is not known; there are %s", name, key, strings.Join(fileNames(), ", ")))
		case settings[at].envOnly:
			faults = append(faults, fmt.Errorf("settings %s: %s: is read from %s only, or from a token file", name, key, settings[at].env))
		}
	})
	return file, name, errors.Join(faults...)
}

// fileNames are the settings that the file may have.
func fileNames() (names []string) {
	for _, s := range settings {
		if !s.envOnly {
			names = append(names, s.name)
		}
	}
	return names
}

// flatten calls do for each value, with its path.
func flatten(prefix string, tree map[string]any, do func(string, any)) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if below, ok := tree[key].(map[string]any); ok {
			flatten(prefix+key+".", below, do)
		} else {
			do(prefix+key, tree[key])
		}
	}
}

// readToken is the token to show: of the environment, or the first line of a file.
func (v values) readToken() (string, error) {
	token := v[setToken]
	if token.text != "" && token.rank >= v[setTokenFile].rank {
		return token.text, nil
	}
	name := v.text(setTokenFile)
	if name == "" {
		return "", nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", usage("token file: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if first = strings.TrimSpace(first); first == "" {
		return "", usage("token file %s: its first line is empty", name)
	}
	return first, nil
}
