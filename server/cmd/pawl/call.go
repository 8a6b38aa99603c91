package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// call is one verb under way.
type call struct {
	*app
	cmd  *cobra.Command
	ctx  context.Context
	api  *client
	args []string
}

// read gets something into out, and prints its JSON if that is wanted: then done is true.
func (c *call) read(path string, query url.Values, out any) (done bool, err error) {
	text, err := c.api.get(c.ctx, path, query, out)
	if err != nil {
		return false, err
	}
	return c.json, c.printJSON(text)
}

// send is read for what changes something.
func (c *call) send(method, path string, body, out any) (done bool, err error) {
	text, err := c.api.do(c.ctx, request{method: method, path: path, body: body, headers: c.keyHeader()})
	if err != nil {
		return false, err
	}
	if err := decode(text, out); err != nil {
		return false, err
	}
	return c.json, c.printJSON(text)
}

func (c *call) post(path string, body, out any) (done bool, err error) {
	return c.send(http.MethodPost, path, body, out)
}

// printJSON prints what the API said, if that is wanted.
func (c *call) printJSON(text []byte) error {
	if !c.json || len(text) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(c.out, "%s\n", text)
	return err
}

// tellDone says what was done where the API answers nothing: an object for scripts, or a line for people.
func (c *call) tellDone(object any, format string, args ...any) error {
	if c.json {
		return json.NewEncoder(c.out).Encode(object)
	}
	c.print(format, args...)
	return nil
}

// print writes a line for people.
func (c *call) print(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

// each does something to every argument, goes on after a failure, and tells of it at once.
// The first failure decides how the program ends.
func (c *call) each(args []string, do func(string) error) error {
	if len(args) == 1 {
		return do(args[0])
	}
	var first error
	failed := 0
	for _, arg := range args {
		err := do(arg)
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		failed++
		c.tell(fmt.Errorf("%s: %w", arg, err))
	}
	if first == nil {
		return nil
	}
	return &coded{exitCode(first), "failed", fmt.Errorf("%d of %d failed", failed, len(args))}
}

// keyFlag lets a write be sent again.
func keyFlag(cmd *cobra.Command, short string) *cobra.Command {
	cmd.Flags().String("idempotency-key", "", short)
	return cmd
}

// keyHeader is the header of that key, if one was given.
func (c *call) keyHeader() map[string]string {
	if key := c.flag("idempotency-key"); key != "" {
		return map[string]string{"Idempotency-Key": key}
	}
	return nil
}

// flag is the value of a flag of text.
func (c *call) flag(name string) string {
	text, _ := c.cmd.Flags().GetString(name)
	return text
}

func (c *call) on(name string) bool {
	on, _ := c.cmd.Flags().GetBool(name)
	return on
}

// number is the value of a flag of a whole number.
func (c *call) number(name string) int {
	n, _ := c.cmd.Flags().GetInt(name)
	return n
}

// given reports whether a flag was set by hand.
func (c *call) given(name string) bool { return c.cmd.Flags().Changed(name) }

// checkJSON refuses what is no JSON before it is sent.
func checkJSON(field, text string) (json.RawMessage, error) {
	var v json.RawMessage
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, usage("%s: must be JSON: %w", field, err)
	}
	return v, nil
}
