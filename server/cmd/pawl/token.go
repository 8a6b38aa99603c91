package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/auth"
)

// tokenCommand is about the tokens that a server accepts.
func (a *app) tokenCommand() *cobra.Command {
	var role, expires string
	var hide bool
	made := &cobra.Command{
		Use: "new NAME", Short: "Make a token: the secret for its owner, and the line for the server's token file", Args: counted(1, 1),
		Long: "New makes a random token and writes nothing down. The secret goes to its owner and is shown this once; the line goes into the file that\n" +
			"`pawl serve --tokens` reads, and has its hash only.",
		RunE: func(_ *cobra.Command, args []string) error { return a.newToken(args[0], role, expires, hide) },
	}
	made.Flags().StringVar(&role, "role", "viewer", "what its owner may do: viewer, operator or admin")
	made.Flags().StringVar(&expires, "expires", "", "how long it holds, such as 720h; for ever without it")
	made.Flags().BoolVar(&hide, "hide-payloads", false, "keep arguments, results and logs of jobs from them")
	return group("token", "Make tokens for a server", "", made)
}

func (a *app) newToken(name, role, expires string, hide bool) error {
	if len(strings.Fields(name)) != 1 || strings.HasPrefix(name, "#") {
		return usage("NAME %q: must be one word", name)
	}
	r, err := auth.ParseRole(role)
	if err != nil {
		return usage("%w", err)
	}
	t := auth.Token{Name: name, Role: r, Hidden: hide}
	if expires != "" {
		d, err := time.ParseDuration(expires)
		if err != nil || d <= 0 {
			return usage("--expires %q: must be a time such as 720h", expires)
		}
		t.Expires = a.now().Add(d)
	}
	secret, hash := auth.NewToken()
	t.Hash = hash
	if _, err := auth.ParseTokens(strings.NewReader(t.String() + "\n")); err != nil {
		return usage("%w", err)
	}
	if a.json {
		return json.NewEncoder(a.out).Encode(map[string]string{"token": secret, "line": t.String()})
	}
	_, err = fmt.Fprintf(a.out, "%s\n%s\n", secret, t)
	return err
}
