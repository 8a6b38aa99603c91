package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// named reads bodies whose fields are named exactly as the document says. encoding/json takes "KIND" for "kind", and so
// does huma unless a variable of the whole process says otherwise, which is not ours to set in a user's program.
type named struct {
	schemas huma.Registry
	bodies  map[reflect.Type]*huma.Schema // by pointers to them
}

// format is JSON as huma writes it, and as bodies are read here.
func (n *named) format() huma.Format {
	return huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: n.unmarshal}
}

// add remembers the schema of an operation's body, if it has one. input is what the operation takes.
func (n *named) add(path *huma.PathItem, method string, input reflect.Type) {
	described := map[string]*huma.Operation{http.MethodPost: path.Post, http.MethodPut: path.Put, http.MethodPatch: path.Patch}[method]
	field, ok := input.FieldByName("Body")
	if ok && described != nil && described.RequestBody != nil {
		n.bodies[reflect.PointerTo(field.Type)] = described.RequestBody.Content["application/json"].Schema
	}
}

// unmarshal is called twice for a body: for any value, which huma holds against the schema, and then for its type.
func (n *named) unmarshal(text []byte, v any) error {
	if schema := n.bodies[reflect.TypeOf(v)]; schema != nil {
		var all any
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
		if err := n.check(schema, "", all); err != nil {
			return err
		}
	}
	return json.Unmarshal(text, v)
}

// check refuses the first field that a schema has only under another spelling. path is where v is, with a dot after it.
func (n *named) check(s *huma.Schema, path string, v any) error {
	for s.Ref != "" {
		s = n.schemas.SchemaFromRef(s.Ref)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			of := s.Properties[name]
			if of == nil {
				for right := range s.Properties {
					if strings.EqualFold(right, name) {
						return fmt.Errorf("%s%s: unexpected property, its name is %s", path, name, right)
					}
				}
				if of, _ = s.AdditionalProperties.(*huma.Schema); of == nil {
					continue // a user's value
				}
			}
			if err := n.check(of, path+name+".", v[name]); err != nil {
				return err
			}
		}
	case []any:
		for i := range v {
			if s.Items == nil {
				break
			}
			if err := n.check(s.Items, fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i), v[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
