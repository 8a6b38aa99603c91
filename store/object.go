package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// Object is the fields of a JSON object.
type Object map[string]json.RawMessage

var errNoObject = errors.New("must be a JSON object")

// ParseObject reads the fields of a JSON object; of a field that is there twice, the
// last.
func ParseObject(text []byte) (Object, error) {
	var o Object
	if err := json.Unmarshal(text, &o); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, err
		}
		return nil, errNoObject
	}
	if o == nil { // null
		return nil, errNoObject
	}
	return o, nil
}

// Text is the object in its one form: without blanks, its fields in the order of
// their names.
func (o Object) Text() (json.RawMessage, error) { return json.Marshal(o) }

// Over puts the fields of o over those of under, and leaves the others as they are:
// those that this build does not know, too. A field that is null takes the one
// under it away.
func (o Object) Over(under Object) Object {
	merged := make(Object, len(o)+len(under))
	for name, value := range under {
		merged[name] = value
	}
	for name, value := range o {
		if bytes.Equal(value, []byte("null")) {
			delete(merged, name)
		} else {
			merged[name] = value
		}
	}
	return merged
}

// Names are those of the fields, in order.
func (o Object) Names() []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
