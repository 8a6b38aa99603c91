// Package command has a kind of job that runs a program: pawl.command.
//
//	func main() {
//		command.Guard() // first of all
//		...
//		err := command.Register(e, command.Config{
//			Root:  "/srv/media",
//			Allow: []command.Program{{Name: "thumbnail", Path: "/usr/bin/convert"}},
//		})
//		...
//		e.Enqueue(ctx, command.Run{Program: "thumbnail", Args: []string{"in.png", "out.png"}})
//
// A binary that does not import this package has nothing of it, and a worker that registers it without an allow-list gets an
// error and runs nothing.
//
// # What ends, and when
//
// When a job is cancelled, its timeout is over, its lease is lost or the worker stops, the program and everything that it
// started is ended: SIGTERM, [Config.Grace], SIGKILL. When the worker is killed, even with SIGKILL, they are killed at
// once. When the program exits, what it left running is killed. That needs a second process for each program that runs,
// the guard: this same executable under the name pawl-guard, which takes a few milliseconds and megabytes. [Guard] makes it
// possible.
//
// # Threat model
//
// Who may enqueue jobs is not trusted; who writes the [Config] is. Of a job alone nobody can
//
//   - run a program that is not on the list, or have a shell read something: arguments are handed over one by one;
//   - set a variable that the program's list does not name, or read one of the worker's: the environment is built from
//     Config.Env and the job, and nothing is inherited, nor are open files;
//   - start it in a folder outside Root: not by "..", nor by a link, also not one that is put there meanwhile;
//   - keep a slot, memory or disk of the store: time, output, input and arguments are bounded.
//
// What is left to who writes the Config:
//
//   - Arguments. Many programs can be told to read, write or run anything: `tar --to-command`, `find -exec`,
//     `git -c core.pager`. Give those a Check, or a fixed beginning in Program.Args that ends with "--". Interpreters and
//     shells on the list are programs of the job's choice.
//   - Root is a place to start in, not a prison. The program may open every file that its user may. As root, set UID and
//     GID; where programs are not trusted, run the worker in a container.
//   - A program that means harm, under the worker's own user, can read the worker's memory and kill its guard.
//   - CPU, memory, disk and network of the program are not bounded here.
//   - Output and arguments are stored with the job, in plain text: no secrets on the command line.
//
// On systems other than Linux a program that starts a session of its own (a daemon) gets away from its end. Windows is
// refused.
package command
