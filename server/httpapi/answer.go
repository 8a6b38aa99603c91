package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"
)

// body is an answer that is one value.
type body[T any] struct {
	Body T
}

func answer[T any](v T) *body[T] { return &body[T]{Body: v} }

// writeProblem answers where huma does not.
func writeProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // to who has hung up
}

// cursor is a place in a list, as text that callers only pass back.
func cursor(place any) string {
	text, err := json.Marshal(place)
	if err != nil {
		return "" // plain values
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// readCursor reads one.
func readCursor(text string, place any) error {
	if text == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, place)
	}
	if err != nil {
		return newProblem(http.StatusUnprocessableEntity, "invalid", "after: not a cursor of this list")
	}
	return nil
}

// payload is bytes of a user: as JSON where they are, else as text or base64.
type payload struct {
	JSON   json.RawMessage `json:"json,omitempty" doc:"the value, where it is JSON"`
	Text   string          `json:"text,omitempty" doc:"where it is text and no JSON"`
	Base64 []byte          `json:"base64,omitempty" doc:"where it is neither"`
}

func payloadOf(raw []byte) *payload {
	switch {
	case len(raw) == 0:
		return nil
	case json.Valid(raw):
		return &payload{JSON: raw}
	case utf8.Valid(raw):
		return &payload{Text: string(raw)}
	}
	return &payload{Base64: raw}
}

// readDuration reads a time such as 1h30m. most 0 means no bound of its own.
func readDuration(field, text string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || most > 0 && d > most {
		bound := "must be a time such as 10s or 1h30m"
		if most > 0 {
			bound += ", " + most.String() + " at most"
		}
		return 0, newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("%s %q: %s", field, text, bound))
	}
	return d, nil
}
