package storetest

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The check must be able to fail: histories that break a promise are refused.
func TestLinear_RefusesBrokenHistories(t *testing.T) {
	at := func(call, done int64, c jobCall, a jobAnswer) porcupine.Operation {
		return porcupine.Operation{Input: c, Output: a, Call: call, Return: done}
	}
	claim := func(w job.WorkerID, run int64, call, done int64) porcupine.Operation {
		return at(call, done, jobCall{verb: "claim", worker: w}, jobAnswer{run: run})
	}
	finish := func(w job.WorkerID, run int64, to job.State, v job.Verdict, call, done int64) porcupine.Operation {
		return at(call, done, jobCall{verb: "finish", worker: w, run: run, to: to}, jobAnswer{verdict: v})
	}
	cancel := func(c store.Change, call, done int64) porcupine.Operation {
		return at(call, done, jobCall{verb: "cancel"}, jobAnswer{change: c})
	}
	get := func(s job.State, run int64, call, done int64) porcupine.Operation {
		return at(call, done, jobCall{verb: "get"}, jobAnswer{state: s, run: run})
	}
	for _, c := range []struct {
		name    string
		history []porcupine.Operation
		want    bool
	}{
		{"one life", []porcupine.Operation{claim(1, 1, 1, 2), finish(1, 1, job.Done, job.Applied, 3, 4), get(job.Done, 1, 5, 6)}, true},
		{"calls that overlap may come in any order", []porcupine.Operation{cancel(store.Changed, 1, 10), get(job.Waiting, 0, 2, 3)}, true},
		{"one job, two owners", []porcupine.Operation{claim(1, 1, 1, 10), claim(2, 1, 2, 9)}, false},
		{"a run number given twice", []porcupine.Operation{claim(1, 1, 1, 2), finish(1, 1, job.Waiting, job.Applied, 3, 4), claim(1, 1, 5, 6)}, false},
		{"two finishes of one run", []porcupine.Operation{claim(1, 1, 1, 2), finish(1, 1, job.Done, job.Applied, 3, 9), finish(1, 1, job.Dead, job.Applied, 4, 8)}, false},
		{"P9: a cancel that undoes done", []porcupine.Operation{claim(1, 1, 1, 2), finish(1, 1, job.Done, job.Applied, 3, 4), cancel(store.Changed, 5, 6)}, false},
		{"an asked job that waits again", []porcupine.Operation{claim(1, 1, 1, 2), cancel(store.Asked, 3, 4), finish(1, 1, job.Waiting, job.Applied, 5, 6), get(job.Waiting, 1, 7, 8)}, false},
		{"a read from the past", []porcupine.Operation{claim(1, 1, 1, 2), get(job.Waiting, 0, 3, 4)}, false},
	} {
		if got := porcupine.CheckOperations(oneJob(), c.history); got != c.want {
			t.Errorf("%s: explained %v, want %v", c.name, got, c.want)
		}
	}
}
