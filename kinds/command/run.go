package command

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Run are the arguments of a job that runs a program.
type Run struct {
	Program string   `json:"program"` // a name of the worker's allow-list
	Args    []string `json:"args,omitempty"`
	// Env are variables that the program's entry of the list allows.
	Env map[string]string `json:"env,omitempty"`
	Dir string            `json:"dir,omitempty"` // below Config.Root
	// Stdin is what the program reads. What is not text goes into StdinBytes instead.
	Stdin      string        `json:"stdin,omitempty"`
	StdinBytes []byte        `json:"stdin_bytes,omitempty"`
	Timeout    time.Duration `json:"timeout,omitempty"` // shorter than Config.Timeout
}

// Kind is pawl.command.
func (Run) Kind() string { return "pawl.command" }

// Result is what a program came to. It is kept with a job that is done; see pawl.Result. Of one that failed, the error
// has the end of stderr.
type Result struct {
	Exit int `json:"exit"`
	// Stdout and Stderr are what the program wrote; what is not UTF-8 is replaced by U+FFFD. Of more than Config.Output
	// allows, the beginning and the end are here, with a line between them.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// StdoutCut and StderrCut say that there was more, of StdoutSize and StderrSize bytes in all.
	StdoutCut  bool  `json:"stdout_cut,omitempty"`
	StderrCut  bool  `json:"stderr_cut,omitempty"`
	StdoutSize int64 `json:"stdout_size"`
	StderrSize int64 `json:"stderr_size"`
}

// admit says why a worker does not run this: what it says will not change by trying again.
func (h *launcher) admit(r Run) (Program, error) {
	p, ok := h.programs[r.Program]
	if !ok {
		return p, job.Invalid("program", r.Program, "is not on this worker's list")
	}
	if len(r.Args) > maxArgs {
		return p, job.Invalid("args", len(r.Args), fmt.Sprintf("must be at most %d", maxArgs))
	}
	size := 0
	for i, arg := range r.Args {
		size += len(arg) + 1
		if strings.ContainsRune(arg, 0) {
			return p, job.Invalid(fmt.Sprintf("args[%d]", i), arg, "must not contain a zero byte")
		}
	}
	for name, value := range r.Env {
		size += len(name) + len(value) + 2
		if !slices.Contains(p.Env, name) {
			return p, job.Invalid("env", name, "is not among the variables that jobs may set for "+p.Name)
		}
		if strings.ContainsRune(value, 0) {
			return p, job.Invalid("env["+name+"]", value, "must not contain a zero byte")
		}
	}
	if size > maxArgBytes {
		return p, job.Invalid("args and env", size, fmt.Sprintf("must be at most %d bytes", maxArgBytes))
	}
	if r.Dir != "" && !filepath.IsLocal(r.Dir) {
		return p, job.Invalid("dir", r.Dir, "must be a folder below the root, without a way out of it")
	}
	if r.Timeout < 0 || r.Timeout > h.config.Timeout {
		return p, job.Invalid("timeout", r.Timeout, fmt.Sprintf("must be 0 (the worker's) to %v", h.config.Timeout))
	}
	if r.Stdin != "" && len(r.StdinBytes) > 0 {
		return p, job.Invalid("stdin", "text and bytes", "must be one of them")
	}
	if p.Check != nil {
		if err := p.Check(slices.Clone(r.Args)); err != nil {
			return p, fmt.Errorf("arguments of %s: %w", p.Name, err)
		}
	}
	return p, nil
}
