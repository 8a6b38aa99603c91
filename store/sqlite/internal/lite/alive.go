package lite

import (
	"strings"

	"github.com/pawlwork/pawl/job"
)

// AliveSuffix names the file beside the database in which each worker holds a
// byte locked for as long as its process lives. The system frees the byte when
// the process ends, however it ends, and whoever else has the file sees that at
// once, also from another container of the same machine. So a restart need not
// wait for the lease of the process before it.
//
// A free byte is proof only where it cannot mean anything else:
//
//   - the worker's row says that it took its byte, and in which file: a file that
//     was removed and made again has another name in it;
//   - both processes run on the same kernel: locks of a folder that two machines
//     share may not reach from one to the other.
//
// Otherwise the lease decides. The file holds nothing else and may be removed
// while no process has the database open.
const AliveSuffix = "-alive"

// aliveByte is where a worker's byte is, behind the name.
func aliveByte(namespace int64, w job.WorkerID) int64 { return 1<<60 | namespace<<40 | int64(w) }

// SameKernel compares the first word of two machines (internal/boot): the start
// of the kernel.
func SameKernel(a, b string) bool {
	kernel, _, _ := strings.Cut(a, " ")
	other, _, _ := strings.Cut(b, " ")
	return kernel != "" && kernel == other
}
