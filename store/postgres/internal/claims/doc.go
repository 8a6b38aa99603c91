// Package claims leases ready jobs to workers. It reads job_ready, remembers where it
// came to (frontier.go), looks behind that now and then (sweep.go), and says what
// nobody claims (unserved.go). Where limits bound jobs it lets through their gates what
// they allow (gates.go, gate_choose.go), and remembers in the table gate what has to be
// remembered for that.
package claims
