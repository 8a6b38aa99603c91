// Package check is what the checks and repairs of all stores have in common: the walk
// over the parts of a database, and the sentences of the rules. It knows no database.
package check
