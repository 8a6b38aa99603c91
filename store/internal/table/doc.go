// Package table describes the tables of a store as data. Each room of a store lists
// its own, the store puts the lists together, and whatever must know all tables
// reads the list: purge what to remove when its time is over, Check which rows must
// belong to a namespace, erasure what a namespace has. A test of each store holds
// the list against the database's own catalogue: a table or a column that is not
// listed fails it.
package table
