// Package schedules fires schedules: it looks when one is due, and has the store move
// it on and accept its jobs in one transaction.
//
//	what is declared and set (Mirror) ---> Read: entries, each with its expression or its fault
//	store.ScheduleStates ----------------> decide, a pure function: what to fire, what comes next
//	                                         |
//	                                       store.Fire ---> sleep until the next due time
//
// Every process that runs has one, and all of them may fire at once: the store lets
// the first move a schedule from the state it has read, by the settings of that
// moment, and turns the others away. So that they seldom meet, the leader looks when
// something is due, and the others lateBy later, in case it is stuck. Nobody polls:
// between due times there is one look a minute, by the leader, in case the store's
// clock was set.
package schedules
