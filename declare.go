package pawl

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// settings is what a QueueConfig says for the whole cluster. A Go function is not
// data, so its backoff is not among it. What is kept for more than a lifetime is
// kept for good.
func (q *QueueConfig) settings() QueueSettings {
	return QueueSettings{
		Total: q.Total, Attempts: q.Attempts, Aging: q.Aging,
		KeepDone: min(q.KeepDone, job.MaxKeep), KeepDead: min(q.KeepDead, job.MaxKeep), KeepCancelled: min(q.KeepCancelled, job.MaxKeep),
	}
}

// declares is what this process declares: its queues, patterns of queues, its limits,
// its topics and its schedules.
func (c *Config) declares() []store.Declaration {
	var list []store.Declaration
	for _, name := range c.queueNames() {
		q := c.Queues[name]
		value, err := json.Marshal(q.settings())
		if err != nil {
			continue // numbers and durations are always JSON
		}
		list = append(list, store.Declaration{Setting: queueSetting(name), Value: value})
	}
	for i := range c.Limits {
		if value, err := json.Marshal(c.Limits[i].settings()); err == nil {
			list = append(list, store.Declaration{Setting: limitSetting(c.Limits[i].Name), Value: value})
		}
	}
	for i := range c.Topics {
		if value, err := json.Marshal(c.Topics[i].settings()); err == nil {
			list = append(list, store.Declaration{Setting: topicSetting(c.Topics[i].Name), Value: value})
		}
	}
	return append(list, c.declaredSchedules()...)
}

func queueSetting(name string) store.Setting {
	return store.Setting{Kind: store.SettingQueue, Name: name}
}

// programName is that of the file that runs.
func programName() string {
	if len(os.Args) == 0 {
		return "pawl"
	}
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if job.CheckText("owner", name, 1, job.MaxName) != nil {
		return "pawl"
	}
	return name
}

// buildVersion tells builds apart: by the revision they were made from, when that is
// known and was not changed, else by what they declare.
func buildVersion(declares []store.Declaration) string {
	var revision string
	var modified bool
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
	}
	if revision = revision[:min(len(revision), 12)]; revision != "" && !modified {
		return revision
	}
	h := sha256.New()
	for _, d := range declares {
		fmt.Fprintf(h, "%s %s %s\n", d.Kind, d.Name, d.Value)
	}
	hash := fmt.Sprintf("%x", h.Sum(nil))[:8]
	if revision == "" {
		return hash
	}
	return revision + "." + hash
}
