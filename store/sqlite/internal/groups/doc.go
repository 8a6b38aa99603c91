// Package groups feeds the members of consumer groups. It owns the tables
// pawl_consumer_group, pawl_shelf, pawl_hand, pawl_retry, pawl_stripe and pawl_acked.
//
//	shelf   how far the log was read for those who share it
//	hand    a member: which events it works on; a turn settles and takes, and raises its number
//	retry   an event that was given back, failed or was lost: it waits, or a hand has it, or it is parked
//	stripe  in ordered mode: which hand reads it
//
// There is one writer, so a turn reads, decides and writes under its lock.
package groups
