package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pawlwork/pawl/server/httpapi"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2 // wrong flags or arguments, or a value that is refused
	exitNotFound    = 3
	exitUnreachable = 4 // the server or the store could not be reached or opened
)

// coded is an error with its exit code.
type coded struct {
	code int
	kind string
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

func usage(format string, args ...any) error {
	return &coded{exitUsage, "usage", fmt.Errorf(format, args...)}
}

func unreachable(err error) error { return &coded{exitUnreachable, "unreachable", err} }

// exitCode is what an error ends the program with.
func exitCode(err error) int {
	if c := (*coded)(nil); errors.As(err, &c) {
		return c.code
	}
	p := (*httpapi.Problem)(nil)
	if !errors.As(err, &p) {
		return exitFailed
	}
	switch p.Status {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return exitUsage
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitUnreachable
	}
	return exitFailed
}

// tell writes an error where people look for it: as a problem with --json.
func (a *app) tell(err error) {
	if !a.json {
		lines := []string{message(err)}
		if !errors.As(err, new(*httpapi.Problem)) { // of this process: each fault has a line
			lines = strings.Split(lines[0], "\n")
		}
		for _, line := range lines {
			fmt.Fprintln(a.err, "pawl:", clean(line))
		}
		return
	}
	p := (*httpapi.Problem)(nil)
	if !errors.As(err, &p) {
		kind := "failed"
		if c := (*coded)(nil); errors.As(err, &c) {
			kind = c.kind
		}
		p = &httpapi.Problem{Type: "about:blank", Title: "Failed", Kind: kind, Detail: message(err)}
	}
	_ = json.NewEncoder(a.err).Encode(p) // there is nobody else to tell
}

func message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return strings.TrimPrefix(err.Error(), "pawl: ")
}
