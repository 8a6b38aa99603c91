package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	page  = "../../../docs/cli.md"
	begin = "<!-- what follows is written by go test ./server/cmd/pawl -update -->\n"
)

// commands are all of them, in the order of help.
func commands(cmd *cobra.Command) (list []*cobra.Command) {
	list = append(list, cmd)
	for _, below := range cmd.Commands() {
		if below.Name() != "help" {
			list = append(list, commands(below)...)
		}
	}
	return list
}

// reference is every command with its flags, as the page has it.
func reference() string {
	var b strings.Builder
	b.WriteString(begin)
	for _, cmd := range commands((&app{}).root()) {
		if cmd.Parent() != nil && cmd.Parent().Name() == "completion" {
			continue // cobra's own, of which its help tells
		}
		depth := strings.Count(cmd.CommandPath(), " ")
		heading := "### "
		if depth <= 1 {
			heading = "## "
		}
		fmt.Fprintf(&b, "\n%s`%s`\n\n%s.\n", heading, cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
		if !cmd.HasSubCommands() {
			fmt.Fprintf(&b, "\n    %s\n", cmd.UseLine())
		}
		flags(&b, cmd.LocalNonPersistentFlags())
		if cmd.Parent() == nil {
			b.WriteString("\nFlags of every command:\n")
			flags(&b, cmd.PersistentFlags())
		}
	}
	return b.String()
}

func flags(b *strings.Builder, set *pflag.FlagSet) {
	rows := ""
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		name, is := pflag.UnquoteUsage(f)
		if name != "" {
			name = " " + strings.ToUpper(name)
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			is += " [" + f.DefValue + "]"
		}
		rows += fmt.Sprintf("| `--%s%s` | %s |\n", f.Name, name, strings.ReplaceAll(is, "|", "\\|"))
	})
	if rows != "" {
		b.WriteString("\n| flag | |\n|---|---|\n" + rows)
	}
}

func TestU8_ThePageHasEveryCommand(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("%s: the mark is missing: %s", page, begin)
	}
	want := head + reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s differs from the commands (go test -update writes it anew):\n%s", page, difference(string(text), want))
	}
	for _, s := range settings {
		if !strings.Contains(head, "`"+s.env+"`") || !strings.Contains(head, "`"+s.name+"`") {
			t.Errorf("%s says nothing of %s (%s)", page, s.name, s.env)
		}
	}
}

func TestU8_EveryCommandHasHelp(t *testing.T) {
	for _, cmd := range commands((&app{}).root()) {
		path := strings.Fields(cmd.CommandPath())[1:]
		out, problems, code := within(t, nil, append(path, "--help")...)
		if code != 0 || !strings.Contains(out, "Usage:") || problems != "" || cmd.Short == "" {
			t.Errorf("%v: exit %d:\n%s%s", path, code, out, problems)
		}
		refuses(t, 2, "unknown flag: --no-such-flag", nil, append(path, "--no-such-flag")...)
		if cmd.HasSubCommands() {
			refuses(t, 2, "there is no", nil, append(path, "no-such-verb")...)
		}
	}
}

func TestU8_ShellsCanComplete(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, problems, code := within(t, nil, "completion", shell); code != 0 || !strings.Contains(out, "pawl") {
			t.Errorf("%s: %d %s", shell, code, problems)
		}
	}
	if out, _, code := within(t, nil, "__complete", "job", "re"); code != 0 || !strings.Contains(out, "requeue") || !strings.Contains(out, "retry") {
		t.Errorf("%d %s", code, out)
	}
}
