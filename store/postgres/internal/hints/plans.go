package hints

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of transitions, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "readHints", Text: readHints, Indexes: []string{"hint_transaction"}},
	{Name: "readHintsAll", Text: readHintsAll, Indexes: []string{"hint_transaction"}},
	{Name: "anyHints", Text: anyHints, Indexes: []string{"hint_transaction"}},
	{Name: "removeHints", Text: removeHints, Indexes: []string{"hint_transaction"}},
	{Name: "foreignHints", Text: removeForeignHints, Indexes: []string{"hint_transaction"}},
}
