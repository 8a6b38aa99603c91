package log

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Events are inserted from arrays, one for each column, and an array costs the server as much as an
// index. Most columns of most events are alike, or empty: of such there is one value.

// shape says which columns of a statement have one value for all of its events, by group, so
// that there are few statements.
type shape uint8

const (
	alikePlace shape = 1 << iota // topic, stripe and key
	alikeLabel                   // what the data is
	alikeRest                    // what few events have: none of them has it
	alikeOwn                     // id and data: there is one event
)

// insertColumns are in the order of the arguments, from the third on.
var insertColumns = []struct {
	name, kind string
	alike      shape
}{
	{"topic", "int", alikePlace},
	{"stripe", "smallint", alikePlace},
	{"schema", "int", alikeLabel},
	{"time", "timestamptz", alikeRest},
	{"expires", "timestamptz", alikeRest},
	{"ttl", "bigint", alikeRest},
	{"id", "text", alikeOwn},
	{"key", "text", alikePlace},
	{"type", "text", alikeLabel},
	{"source", "text", alikeLabel},
	{"content_type", "text", alikeLabel},
	{"rest", "bytea", alikeRest},
	{"data", "bytea", alikeOwn},
}

// firstColumn is the argument of the first of them, epochArgument follows the last.
const (
	firstColumn   = 2 // in Go
	epochArgument = firstColumn + 13
)

// appender says who appends, and so how a mark is taken.
type appender uint8

const (
	byWriter appender = iota // the process, for many callers: its writer ($17) moves on from a number ($18)
	byCall                   // one call, in a transaction of the store's own
	byUser                   // a user's transaction, whose setting is the last argument
)

// insertKind is a statement that appends. The versions of the events, where they have some, are $17.
type insertKind struct {
	shape
	by       appender
	versions bool
}

// marks takes the mark, as a row of marked.
func (k insertKind) marks() string {
	switch {
	case k.by == byWriter:
		return moved + markedMoved
	case k.by == byCall:
		return marked
	case k.versions:
		return strings.ReplaceAll(markedOnce, "$17", "$18")
	}
	return markedOnce
}

var insertTexts sync.Map // insertKind → string

// text puts events in, in order. What is numbered comes out of a row of marked: the number is
// taken after the mark.
func (k insertKind) text() string {
	if text, ok := insertTexts.Load(k); ok {
		return text.(string)
	}
	var arrays, names []string
	value := func(name, kind string, argument int, one bool) string {
		given := fmt.Sprintf("$%d::%s", argument, kind)
		if one {
			return given
		}
		arrays, names = append(arrays, given+"[]"), append(names, name)
		return "e." + name
	}
	into, values := []string{"namespace", "seq", "appended"}, []string{"$1", "nextval('pawl.event_seq')", "{now}"}
	for i, c := range insertColumns {
		v := value(c.name, c.kind, firstColumn+1+i, k.shape&c.alike != 0)
		switch c.name {
		case "time":
			v = "coalesce(" + v + ", {now})"
		case "ttl": // no column of the table: the one before it is made of both
			last := len(values) - 1
			values[last] = "coalesce(" + values[last] + ", {now} + " + v + " * interval '1 microsecond')"
			continue
		}
		into, values = append(into, c.name), append(values, v)
	}
	if k.versions {
		into, values = append(into, "version"), append(values, value("version", "bigint", 17, false))
	}
	answer := "seq"
	if k.by == byWriter {
		answer += ", " + heard
	}
	from := "marked\nWHERE marked.held IS NOT NULL"
	if arrays != nil {
		from = `(
	SELECT e.*
	FROM marked
	CROSS JOIN unnest(` + strings.Join(arrays, ", ") + `)
		WITH ORDINALITY AS e (` + strings.Join(names, ", ") + `, n)
	WHERE marked.held IS NOT NULL
	ORDER BY e.n
	OFFSET 0
) AS e`
	}
	text := "WITH " + k.marks() + "\nINSERT INTO pawl.event (" + strings.Join(into, ", ") + ")\nSELECT " + strings.Join(values, ",\n\t") +
		"\nFROM " + from + "\nRETURNING " + answer
	insertTexts.Store(k, text)
	return text
}

// columns are the arguments of the events of one or more calls, as arrays.
func columns(namespace, mark int32, topics *numbered, calls ...[]stream.Publication) ([]any, error) {
	n := 0
	for _, drafts := range calls {
		n += len(drafts)
	}
	topic, stripe, schema := make([]int32, n), make([]int16, n), make([]int32, n)
	when, expires, ttl := make([]pgtype.Timestamptz, n), make([]pgtype.Timestamptz, n), make([]pgtype.Int8, n)
	id, key, kind, source, content := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	rest, data := make([][]byte, n), make([][]byte, n)
	i := 0
	for _, drafts := range calls {
		for at := range drafts {
			d := &drafts[at]
			if topics.of[d.Topic] == 0 { // a fault of ours: nobody would find the event again
				return nil, fmt.Errorf("pawl: topic %q has no number", d.Topic)
			}
			topic[i], stripe[i], schema[i] = topics.of[d.Topic], stream.Stripe(d.Topic, d.Key), int32(d.Schema)
			when[i] = pgtype.Timestamptz{Time: d.Time, Valid: !d.Time.IsZero()}
			expires[i] = pgtype.Timestamptz{Time: d.Expires, Valid: !d.Expires.IsZero()}
			ttl[i] = pgtype.Int8{Int64: d.TTL.Microseconds(), Valid: d.TTL > 0}
			id[i], key[i], kind[i], source[i], content[i], data[i] = d.ID, d.Key, d.Type, d.Source, d.ContentType, d.Data
			var err error
			if rest[i], err = d.Rest(); err != nil {
				return nil, fmt.Errorf("%w event: %w", job.ErrInvalid, err)
			}
			i++
		}
	}
	return []any{namespace, mark, topic, stripe, schema, when, expires, ttl, id, key, kind, source, content, rest, data,
		int32(topics.epoch)}, nil
}

// shaped leaves one value of each column of which the statement wants one.
func shaped(args []any) (shape, []any) {
	values := args[firstColumn:epochArgument]
	of := alikePlace | alikeLabel | alikeRest | alikeOwn
	for i, c := range insertColumns {
		if of&c.alike != 0 && !alike(values[i], c.alike) {
			of &^= c.alike
		}
	}
	for i, c := range insertColumns {
		if of&c.alike != 0 {
			values[i] = firstOf(values[i])
		}
	}
	return of, args
}

// alike reports whether one value will do for a column of a group.
func alike(column any, group shape) bool {
	switch list := column.(type) {
	case []int32:
		return same(list)
	case []int16:
		return same(list)
	case []string:
		if group == alikeOwn {
			return len(list) == 1
		}
		return same(list)
	case []pgtype.Timestamptz:
		return !slices.ContainsFunc(list, func(t pgtype.Timestamptz) bool { return t.Valid })
	case []pgtype.Int8:
		return !slices.ContainsFunc(list, func(n pgtype.Int8) bool { return n.Valid })
	case [][]byte:
		if group == alikeOwn {
			return len(list) == 1
		}
		return !slices.ContainsFunc(list, func(b []byte) bool { return b != nil })
	}
	return false
}

func same[T comparable](list []T) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return v != list[0] })
}

func firstOf(column any) any {
	switch list := column.(type) {
	case []int32:
		return list[0]
	case []int16:
		return list[0]
	case []string:
		return list[0]
	case []pgtype.Timestamptz:
		return list[0]
	case []pgtype.Int8:
		return list[0]
	case [][]byte:
		return list[0]
	}
	return column
}
