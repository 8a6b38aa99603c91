// Package claims leases ready jobs to workers. It owns no table: it reads job_ready,
// remembers where it came to (frontier.go), looks behind that now and then
// (sweep.go), and says what nobody claims (unserved.go).
package claims
