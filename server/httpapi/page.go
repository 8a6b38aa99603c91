package httpapi

import (
	"cmp"
	"slices"
)

// Paging chooses a page of a list that the engine tells whole, in the order of its names.
type Paging struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	After string `query:"after" maxLength:"1000" doc:"next of the page before"`
}

// pageOf is the page, and the cursor of the one behind it; empty: there is none. key says
// where an entry stands: it is what the cursor keeps, so that a page begins at its place
// also when entries came and went.
func pageOf[T any](in *Paging, all []T, key func(*T) string) (page []T, next string, err error) {
	var after string
	if err := readCursor(in.After, &after); err != nil {
		return nil, "", err
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(x, y T) int { return cmp.Compare(key(&x), key(&y)) })
	from := 0
	if in.After != "" {
		from, _ = slices.BinarySearchFunc(sorted, after, func(x T, at string) int {
			if key(&x) <= at {
				return -1
			}
			return 1
		})
	}
	rest := sorted[from:]
	if len(rest) <= in.Limit {
		return rest, "", nil
	}
	page = rest[:in.Limit]
	return page, cursor(key(&page[in.Limit-1])), nil
}

// wireOf are entries as they go over the wire: never null.
func wireOf[T, W any](list []T, wire func(*T) W) []W {
	out := make([]W, len(list))
	for i := range list {
		out[i] = wire(&list[i])
	}
	return out
}
