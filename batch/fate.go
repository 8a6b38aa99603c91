package batch

import (
	"context"
	"slices"
)

// fate is what became of a batch: an error for all, or outputs and perhaps errors one by one.
type fate[Out any] struct {
	outs       []Out
	errs       Errors // nil, or one per input
	err        error
	miscounted bool // err is ErrWrongOutputs: the call did its work, so that repeating it would do it twice
}

// of is the answer to the i-th item.
func (f *fate[Out]) of(i int) (out Out, err error) {
	switch {
	case f.err != nil:
		return out, f.err
	case f.errs != nil && f.errs[i] != nil:
		return out, f.errs[i]
	default:
		return f.outs[i], nil
	}
}

// failed counts the items, of n, that are answered with an error.
func (f *fate[Out]) failed(n int) (failed int) {
	if f.err != nil {
		return n
	}
	for _, err := range f.errs {
		if err != nil {
			failed++
		}
	}
	return failed
}

// judge turns what a process function returned for n inputs into a fate with exactly one answer for each.
func judge[Out any](name string, n int, outs []Out, err error) fate[Out] {
	errs, each := err.(Errors)
	switch {
	case err != nil && !each:
		return fate[Out]{err: err}
	case len(errs) == 0: // none, or an Errors without entries
		if len(outs) != n {
			return fate[Out]{err: wrongOutputs(name, len(outs), n), miscounted: true}
		}
		return fate[Out]{outs: outs}
	case len(errs) != n:
		return fate[Out]{err: wrongOutputs(name, len(errs), n), miscounted: true}
	case len(outs) != n: // the items that failed keep their own error, the others have no output
		errs = slices.Clone(errs)
		for i := range errs {
			if errs[i] == nil {
				errs[i] = wrongOutputs(name, len(outs), n)
			}
		}
	}
	return fate[Out]{outs: outs, errs: errs}
}

// process is the user's function and the name of the batcher that calls it.
type process[K comparable, In, Out any] struct {
	function func(ctx context.Context, key K, in []In) ([]Out, error)
	name     string
}

// call runs process once and turns a panic into an error.
func (p process[K, In, Out]) call(ctx context.Context, key K, in []In) (f fate[Out]) {
	defer func() {
		if value := recover(); value != nil {
			f = fate[Out]{err: newPanicError(p.name, value)}
		}
	}()
	outs, err := p.function(ctx, key, in)
	return judge(p.name, len(in), outs, err)
}

// bisect runs process and, while split agrees that one item may be to blame, runs it again on the two halves. It stops
// when the context has ended: then the error says nothing about the items.
func (p process[K, In, Out]) bisect(ctx context.Context, key K, in []In, split func(error) bool) fate[Out] {
	f := p.call(ctx, key, in)
	if f.err == nil || f.miscounted || len(in) == 1 || ctx.Err() != nil || !split(f.err) {
		return f
	}
	half := len(in) / 2
	whole := fate[Out]{outs: make([]Out, len(in)), errs: make(Errors, len(in))}
	whole.set(0, half, p.bisect(ctx, key, in[:half:half], split))
	whole.set(half, len(in), p.bisect(ctx, key, in[half:], split))
	return whole
}

func (f *fate[Out]) set(from, to int, part fate[Out]) {
	for i := from; i < to; i++ {
		f.outs[i], f.errs[i] = part.of(i - from)
	}
}
