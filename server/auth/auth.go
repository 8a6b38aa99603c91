// Package auth says who makes a request of the server, and what they may do.
//
//	request --> Auth.Identify --> Identity{Name, Role} --> route's Role --> handler, audited under Name
package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Role is what somebody may do. Each may do what those before it may.
type Role int

// The roles.
const (
	Nobody   Role = iota // only what needs no token: health
	Viewer               // reads
	Operator             // changes jobs, queues, schedules and limits; works as a worker
	Admin                // erases, repairs, changes upkeep
)

var roleNames = [...]string{"nobody", "viewer", "operator", "admin"}

func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("role %d", int(r))
	}
	return roleNames[r]
}

// ParseRole reads one of viewer, operator and admin.
func ParseRole(name string) (Role, error) {
	for r := Viewer; r <= Admin; r++ {
		if name == r.String() {
			return r, nil
		}
	}
	return 0, fmt.Errorf("role %q: must be one of %s", name, strings.Join(roleNames[Viewer:], ", "))
}

// Identity is who makes a request.
type Identity struct {
	Name string // as in the audit log
	Role Role
	// Hidden keeps payloads, results, headers and logs of jobs from them.
	Hidden bool
}

// Auth identifies requests. Errors other than those below are faults of its own.
type Auth interface {
	Identify(r *http.Request) (Identity, error)
}

// Why a request is refused.
var (
	ErrNoToken  = errors.New("a token is needed")
	ErrBadToken = errors.New("the token is not known, or was revoked")
)

// Func is an Auth that is a function, such as a user's own.
type Func func(*http.Request) (Identity, error)

// Identify calls it.
func (f Func) Identify(r *http.Request) (Identity, error) { return f(r) }

// Open lets everybody do everything, under a name: on loopback, or behind somebody's own
// auth.
func Open(name string) Auth {
	return Func(func(*http.Request) (Identity, error) { return Identity{Name: name, Role: Admin}, nil })
}

type identityKey struct{}

// With puts who makes a request into its context.
func With(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// From is who makes the request of a context.
func From(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}
