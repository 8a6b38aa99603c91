package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is that of the build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version of this program", Args: counted(0, 0), RunE: func(*cobra.Command, []string) error {
		if a.json {
			return json.NewEncoder(a.out).Encode(map[string]string{"version": version(), "go": runtime.Version()})
		}
		_, err := fmt.Fprintf(a.out, "pawl %s (%s)\n", version(), runtime.Version())
		return err
	}}
}
