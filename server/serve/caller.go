package serve

import (
	"context"
	"net/http"

	"github.com/pawlwork/pawl/server/auth"
)

// hiding hides payloads from those up to a role.
func hiding(who auth.Auth, hide bool, most auth.Role) auth.Auth {
	return auth.Func(func(r *http.Request) (auth.Identity, error) {
		id, err := who.Identify(r)
		id.Hidden = id.Hidden || hide && id.Role <= most
		return id, err
	})
}

// caller is who makes a request, as the gate found out, so that it is asked once.
type caller struct {
	id  auth.Identity
	err error
}

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// known is the auth behind the gate.
var known = auth.Func(func(r *http.Request) (auth.Identity, error) {
	c, ok := r.Context().Value(callerKey{}).(caller)
	if !ok {
		return auth.Identity{}, auth.ErrNoToken
	}
	return c.id, c.err
})

// identified puts who calls into the context of the request.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := known(r)
		next.ServeHTTP(w, r.WithContext(auth.With(r.Context(), id)))
	})
}

// needs lets those on who have a role.
func needs(role auth.Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := known(r)
		switch {
		case err != nil:
			unauthorized(w, err)
		case id.Role < role:
			refuse(w, http.StatusForbidden, "forbidden", "needs the role "+role.String()+", and "+id.Name+" is "+id.Role.String())
		default:
			next.ServeHTTP(w, r)
		}
	})
}
