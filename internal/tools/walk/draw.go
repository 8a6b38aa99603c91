package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// phase is a part of a job's life, with the function in which it begins.
type phase struct{ name, root string }

var phases = []phase{
	{"enqueue", "pawl.Engine.Enqueue"},
	{"hand-over", "runner.reservation.Settle"},
	{"run", "runner.slot.loop"},
	{"finish", "runner.Runner.finishLoop"},
	{"purge", "keeper.Keeper.PurgeOnce"},
}

// drawing is a walk in the order of calls: each function once, where it comes first.
type drawing struct {
	source *source
	ran    map[*function]bool
	named  map[string]*function // those that ran
	at     map[*function]string // the phase in which it comes first
	lines  map[string][]line    // by phase
}

// line is a function and how deep in the calls it is.
type line struct {
	fn    *function
	depth int
}

// draw puts the functions that ran in the order of the job's life. One that no phase leads to is an error: either it is not
// the job's, or a hand-over is not in the table.
func draw(s *source, ran map[*function]bool) (*drawing, error) {
	d := &drawing{source: s, ran: ran, named: map[string]*function{}, at: map[*function]string{}, lines: map[string][]line{}}
	for fn := range ran {
		d.named[fn.name] = fn
	}
	for _, p := range phases { // a phase ends where the next begins
		root := d.named[p.root]
		if root == nil {
			return nil, fmt.Errorf("%s: %s did not run", p.name, p.root)
		}
		d.at[root] = p.name
	}
	for _, p := range phases {
		d.enter(p.name, d.named[p.root], 0)
	}
	var lost []string
	for fn := range ran {
		if d.at[fn] == "" {
			lost = append(lost, fn.name)
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		return nil, fmt.Errorf("no phase leads to %s: name in others.go whose they are, or how they are reached", strings.Join(lost, ", "))
	}
	return d, nil
}

// steps counts those of the functions that ran.
func (d *drawing) steps() (n int) {
	for fn := range d.ran {
		if fn.step() {
			n++
		}
	}
	return n
}

// enter draws a function, and below it those it leads to first.
func (d *drawing) enter(phase string, fn *function, depth int) {
	d.at[fn] = phase
	d.lines[phase] = append(d.lines[phase], line{fn, depth})
	next := d.calls(fn)
	for _, name := range handOvers[fn.name] {
		if to := d.named[name]; to != nil {
			next = append(next, to)
		}
	}
	for _, to := range next {
		if d.at[to] == "" {
			d.enter(phase, to, depth+1)
		}
	}
}

// calls lists the functions that ran and that one names, in the order of its text: those it calls and those it passes on.
func (d *drawing) calls(fn *function) (called []*function) {
	ast.Inspect(fn.decl.Body, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		object, ok := fn.info.Uses[name].(*types.Func)
		if !ok {
			return true
		}
		if to := d.source.byObject[object.Origin()]; to != nil {
			if d.ran[to] {
				called = append(called, to)
			}
			return true
		}
		called = append(called, d.implementing(object)...)
		return true
	})
	return called
}

// implementing lists the methods that ran and that a call of an interface's method may mean.
func (d *drawing) implementing(method *types.Func) (found []*function) {
	receiver := method.Signature().Recv()
	if receiver == nil || !types.IsInterface(receiver.Type()) {
		return nil
	}
	for _, fn := range d.source.functions {
		if !d.ran[fn] || fn.decl.Recv == nil || fn.decl.Name.Name != method.Name() {
			continue
		}
		of := fn.info.Defs[fn.decl.Name].(*types.Func).Signature().Recv().Type()
		if types.Implements(of, receiver.Type().Underlying().(*types.Interface)) {
			found = append(found, fn)
		}
	}
	return found
}
