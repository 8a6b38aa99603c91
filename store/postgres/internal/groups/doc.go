// Package groups feeds the members of consumer groups. It owns the tables consumer_group,
// shelf, shelf_at, hand, hand_at, retry, stripe and acked.
//
//	shelf   how far the log was read for those who share it
//	hand    a member: which events it works on; a turn settles and takes, and raises its number
//	retry   an event that was given back, failed or was lost: it waits, or a hand has it, or it is parked
//	stripe  in ordered mode: which hand reads it
//
// # A turn of those who share a shelf
//
// One round trip: an advisory lock on the shelf, so that its members take turns; rows that
// go back; one statement that finds the hand by its turn, picks what waits, reads behind the
// shelf, and writes both. The lock comes in a statement before it: the snapshot of the one
// that reads must be later, or it would see the shelf as it was before the other's turn.
//
// # A turn in ordered mode
//
// Nobody else reads a member's stripes, so it reads first and writes then, fenced by its
// turn. Stripes go from one to another when nothing of them is open.
//
// # Locks
//
// The gate of the group (an advisory lock of those who join, move or delete it), hand (only to
// end it, or to ask what a user's transaction has acknowledged), hand_at, retry, stripe,
// consumer_group. The version of a group is raised last.
//
// Turns do not wait for the disk, unless they store dead letters: one that a crash takes
// back only delivers again, and the member, whose next turn is refused, joins again.
package groups
