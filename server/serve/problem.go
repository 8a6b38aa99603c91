package serve

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/httpapi"
)

// refuse answers with a problem, as the API does.
func refuse(w http.ResponseWriter, status int, kind, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(httpapi.Problem{
		Type: "about:blank", Status: status, Title: http.StatusText(status), Kind: kind, Detail: detail,
	})
}

// unauthorized refuses who is not let in. Faults of auth itself are logged by the gate.
func unauthorized(w http.ResponseWriter, err error) {
	if !refused(err) {
		refuse(w, http.StatusInternalServerError, "internal", "the server failed; its log says why")
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
	refuse(w, http.StatusUnauthorized, "unauthorized", err.Error())
}

// refused reports whether an error of auth is about the caller.
func refused(err error) bool {
	return errors.Is(err, auth.ErrNoToken) || errors.Is(err, auth.ErrBadToken)
}
