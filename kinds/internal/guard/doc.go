// Package guard runs a program so that everything it starts ends with it, also when the worker is killed.
//
// A process that is killed with SIGKILL runs no code. So somebody else must notice and end what it started: the guard, a
// process between the worker and the program. It is this same executable, started again, which [Main] recognises by its
// name.
//
//	worker ──control──▶ guard ──starts──▶ program ──▶ what it starts
//	       ◀──status───
//
// The program's stdin, stdout and stderr are the worker's own pipes; nothing is copied through the guard.
//
// When it ends, and how:
//
//  1. The program exits. What it left running is killed at once.
//  2. The worker asks (a cancel, a timeout): SIGTERM to the program's group, then SIGKILL to all when the grace is over.
//  3. The worker is gone, which the end of the control pipe tells: SIGKILL to all at once, since nobody waits for an
//     answer, and the job may run elsewhere by now.
//  4. The guard itself is killed. The kernel kills the program (Linux: its parent-death signal), and the worker kills
//     what is in the guard's session.
//
// On Linux the guard adopts orphans (PR_SET_CHILD_SUBREAPER): whoever starts a session of its own or lets its parent end
// falls to the guard as a child, and all of them are gone when the guard has none left. It also gives up gaining
// privileges (PR_SET_NO_NEW_PRIVS), since it could not end what runs as somebody else. On other unix systems the guard
// ends the program's group: who leaves it with setsid gets away. Windows has none of this and is refused.
//
// Not covered: a program that means harm. It has the rights of its user, can kill the guard if that is the same user
// (then, on Linux, what it put into a session of its own gets away), and can ask another daemon of the machine to run
// something for it.
package guard
