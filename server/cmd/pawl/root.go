package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// root is the tree of all commands.
func (a *app) root() *cobra.Command {
	root := group("pawl", "Durable background work: jobs, queues, schedules, limits", "")
	root.Long = "Pawl runs durable background work.\n\n" +
		"Commands ask a server (--server, PAWL_SERVER) or a store (PAWL_STORE, --store-file) by the same calls.\n" +
		"Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 the server or the store could not be reached."
	root.SetIn(a.in)
	root.SetOut(a.out) // before completion is added, which takes it along
	root.SetErr(a.err)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w; see %s --help", err, cmd.CommandPath())
	})
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print the JSON of the API, for scripts")
	root.PersistentFlags().StringVar(&a.note, "note", "", "`text` for the audit log: why")
	root.PersistentFlags().String("config", "", "`file` of settings, TOML [PAWL_CONFIG]")
	addSettings(root, false)
	for _, noun := range nouns {
		root.AddCommand(noun(a))
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, groupRun
		}
	}
	return root
}

// nouns make the commands below pawl.
var nouns = []func(*app) *cobra.Command{
	(*app).jobCommand, (*app).queueCommand, (*app).kindCommand, (*app).pauseCommand, (*app).freezeCommand, (*app).unfreezeCommand,
	(*app).scheduleCommand, (*app).limitCommand, (*app).topicCommand, (*app).cursorCommand, (*app).groupCommand,
	(*app).workerCommand, (*app).serviceCommand, (*app).operationCommand, (*app).auditCommand,
	(*app).failureCommand, (*app).metricCommand, (*app).settingsCommand, (*app).checkCommand, (*app).upkeepCommand, (*app).topCommand,
	(*app).serveCommand, (*app).demoCommand, (*app).tokenCommand, (*app).migrateCommand, (*app).configCommand, (*app).versionCommand,
}

// group is a command that only has others below it.
func group(use, short, long string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs, RunE: groupRun}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(below...)
	return cmd
}

// groupRun shows what there is, and refuses what there is not: cobra itself would show help
// and call that a success.
func groupRun(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	text := fmt.Sprintf("there is no %s %s", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("%s; see %s --help", text, cmd.CommandPath())
}

// counted wants so many arguments; most -1 is no bound.
func counted(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least:
			return usage("%s: too few arguments (%d); use: %s", cmd.CommandPath(), n, cmd.UseLine())
		case most >= 0 && n > most:
			return usage("%s: too many arguments (%d); use: %s", cmd.CommandPath(), n, cmd.UseLine())
		}
		return nil
	}
}

// verb is a command that asks the API.
func (a *app) verb(use, short string, args cobra.PositionalArgs, do func(*call) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(cmd)
		if err != nil {
			return err
		}
		return do(&call{app: a, cmd: cmd, ctx: cmd.Context(), api: c, args: args})
	}}
}
