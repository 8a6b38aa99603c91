// Package tabletest holds the list of a store's tables against its database and its
// page, for the tests of both stores.
package tabletest
