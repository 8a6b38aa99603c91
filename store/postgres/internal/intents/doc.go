// Package intents applies what users' transactions want done to rows that others
// need, too. It owns the table intent.
//
//	user's transaction:  INSERT intent          (leave.go)  holds nobody up
//	its commit
//	our transaction:     SELECT ... SKIP LOCKED (take.go)   in order, per subject
//	                     Lock, Apply            (apply.go)  by kind, in the lock order
//	                     DELETE intent                      so each is applied once
//
// The process that left intents looks for them itself (work.go): at once where it
// sees the commit, else after pauses that grow. Others hear of them when there is
// more than one transaction takes, and every process sweeps. An intent that fails is
// found by halving its batch, and put off (put_off.go).
package intents
