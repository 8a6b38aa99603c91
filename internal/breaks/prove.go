package breaks

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// A Result is the verdict on one patch.
type Result struct {
	Patch   Patch
	Verdict Verdict
	Detail  string // what the commands said, when the verdict is not Caught
}

// A Prover tries patches on one copy of the tree, one after the other.
type Prover struct {
	Tree    *Tree
	Timeout time.Duration // for one test; a broken one may hang, and then counts as failed

	// before remembers which tests pass on the unbroken tree: many patches share one.
	before map[string]Result
}

// Prove tries one patch and leaves the copy as it was. It never returns Caught for a test that did not run, did not
// build, or fails anyway.
func (p *Prover) Prove(ctx context.Context, patch Patch) Result {
	if before := p.unbroken(ctx, patch); before.Verdict != Caught {
		return before
	}
	if err := p.Tree.Apply(ctx, patch); err != nil {
		return Result{patch, NotApplied, err.Error()}
	}
	result := p.broken(ctx, patch)
	// A cancelled run still leaves a clean copy, hence a context that goes on.
	if err := p.Tree.Restore(context.WithoutCancel(ctx)); err != nil {
		return Result{patch, Impossible, "the copy cannot be restored: " + err.Error()}
	}
	return result
}

// unbroken wants the named test to pass before the patch. Caught means: go on.
func (p *Prover) unbroken(ctx context.Context, patch Patch) Result {
	key := strings.Join(patch.Test.Args(), " ")
	if known, ok := p.before[key]; ok {
		known.Patch = patch
		return known
	}
	result := Result{Patch: patch}
	switch seen, output, err := p.test(ctx, patch.Test); {
	case err != nil:
		return Result{patch, Impossible, err.Error()}
	case seen == absent:
		result.Verdict, result.Detail = NotRun, output
	case seen == failed:
		result.Verdict, result.Detail = BrokenNow, output
	}
	if p.before == nil {
		p.before = make(map[string]Result)
	}
	p.before[key] = result
	return result
}

// broken wants the named test to compile and to fail.
func (p *Prover) broken(ctx context.Context, patch Patch) Result {
	// No test matches, so only building and vetting are left of go test. A failure here is not the one we look for.
	if out, err := p.goTest(ctx, patch.Test.command("-run=^$")); err != nil {
		return Result{patch, Impossible, err.Error()}
	} else if !out.clean {
		return Result{patch, NotBuilt, string(out.text)}
	}
	switch seen, output, err := p.test(ctx, patch.Test); {
	case err != nil:
		return Result{patch, Impossible, err.Error()}
	case seen == absent:
		return Result{patch, NotRun, output}
	case seen == passed:
		return Result{patch, Survived, output}
	}
	return Result{Patch: patch, Verdict: Caught}
}

// test runs the named test once.
func (p *Prover) test(ctx context.Context, test Test) (testResult, string, error) {
	out, err := p.goTest(ctx, test.Args("-json", fmt.Sprintf("-timeout=%s", p.Timeout)))
	if err != nil {
		return 0, "", err
	}
	return judge(out.text, test.Name, out.clean), text(out.text), nil
}

// An answer is what the go command printed and whether it was content.
type answer struct {
	text  []byte
	clean bool
}

// goTest runs the go command in the copy. Its exit status is an answer, not an error.
func (p *Prover) goTest(ctx context.Context, args []string) (answer, error) {
	command := newCommand(ctx, p.Tree.dir, append([]string{"go"}, args...)...)
	command.Env = append(command.Env, "TMPDIR="+p.Tree.temporary)
	out, err := command.CombinedOutput()
	if cause := context.Cause(ctx); cause != nil {
		return answer{}, cause
	}
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		return answer{}, err
	}
	return answer{text: out, clean: err == nil}, nil
}
