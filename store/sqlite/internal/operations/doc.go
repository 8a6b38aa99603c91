// Package operations keeps what operators do to many jobs, and does it page by page:
// the jobs of a page, the cursor and the counts change in one transaction. It owns
// the table pawl_operation.
package operations
