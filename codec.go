package pawl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/pawlwork/pawl/job"
)

// Codec turns arguments and results into bytes and back. Every process of a
// namespace must use the same one.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// JSON is the default codec: encoding/json, except that text which is not valid
// UTF-8 is refused, because encoding/json would replace it in silence.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func (jsonCodec) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	// encoding/json writes the escape \ufffd for each invalid byte and a valid
	// U+FFFD unescaped, so most values need no walk.
	if bytes.Contains(data, []byte(`\ufffd`)) {
		if path := invalidText(reflect.ValueOf(v), reflect.TypeOf(v).String(), 0); path != "" {
			return nil, job.Invalid("args", path, "must be valid UTF-8")
		}
	}
	return data, nil
}

// invalidText finds the path of a string that is not valid UTF-8.
func invalidText(v reflect.Value, path string, depth int) string {
	if depth > 64 {
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return path
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if p := invalidText(v.Field(i), path+"."+v.Type().Field(i).Name, depth+1); p != "" {
				return p
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if p := invalidText(it.Key(), path+" (a key)", depth+1); p != "" {
				return p
			}
			if p := invalidText(it.Value(), fmt.Sprintf("%s[%v]", path, it.Key()), depth+1); p != "" {
				return p
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return ""
		}
		for i := range v.Len() {
			if p := invalidText(v.Index(i), fmt.Sprintf("%s[%d]", path, i), depth+1); p != "" {
				return p
			}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return invalidText(v.Elem(), path, depth+1)
		}
	}
	return ""
}
