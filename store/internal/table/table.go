package table

import "slices"

// Table is one table of a store.
type Table struct {
	Name string // as SQL has it, without a schema
	// Key is the primary key, which begins with the namespace. Where it is something
	// else, Except says why.
	Key    []string
	Except string
	// Shared: rows are of the whole database. Erasing a namespace leaves them.
	Shared bool
	// Users are the columns with bytes of users' making, which Pawl keeps and gives
	// back, and never seeks or compares: what one may want to encrypt or redact.
	Users []string
	// Ours are the other columns of text or bytes that are not in the key: names by
	// which rows are found and grouped (of queues, kinds, keys, tags), digests, and
	// what Pawl writes for itself.
	Ours   []string
	Parent Parent
	Expiry Expiry
	// Roll is when rows are rolled up into others, which the round of that name does.
	Roll Expiry
	// Derived: the rows can be lost without losing anything.
	Derived bool
}

// Parent is what the rows of a table belong to: the row whose id a column names, in
// one of some tables.
type Parent struct {
	Column string
	Tables []string
}

// Expiry is when rows go by themselves. None without a column.
type Expiry struct {
	Column string // the time is over when the store's clock has reached it
	When   string // condition of the index, which a statement has to repeat; empty means none
	Index  string // finds what goes first
	// Own says how rows go where it takes more than deleting them: the room has a
	// statement of its own for it.
	Own string
}

// Expiring are the tables whose rows are simply deleted when their time is over.
func Expiring(list []Table) []Table {
	return slices.DeleteFunc(slices.Clone(list), func(t Table) bool { return t.Expiry.Column == "" || t.Expiry.Own != "" })
}

// InNamespace are the tables whose rows belong to a namespace, in the order in
// which they can be emptied: a table comes before those that its rows belong to.
// Otherwise the last come first: rooms stand on those listed before them.
func InNamespace(list []Table) []Table {
	left := slices.DeleteFunc(slices.Clone(list), func(t Table) bool { return t.Shared })
	slices.Reverse(left)
	var order []Table
	for len(left) > 0 {
		free := slices.IndexFunc(left, func(t Table) bool {
			return !slices.ContainsFunc(left, func(child Table) bool {
				return child.Name != t.Name && slices.Contains(child.Parent.Tables, t.Name)
			})
		})
		free = max(free, 0) // a circle: somewhere one has to begin
		order = append(order, left[free])
		left = slices.Delete(left, free, free+1)
	}
	return order
}

// Rolling are the tables whose rows are rolled up, each with that as its expiry.
func Rolling(list []Table) (rolling []Table) {
	for _, t := range list {
		if t.Roll.Column != "" {
			t.Expiry = t.Roll
			rolling = append(rolling, t)
		}
	}
	return rolling
}

// NoNamespace is the rule of Check that holds for every table: its rows are of a
// namespace that exists.
const NoNamespace = "row of no namespace"
