package pawltest

import (
	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// firing reports whether a schedule is due, or has no due time yet that it is to have.
func (e *Engine) firing() bool {
	e.t.Helper()
	states := e.scheduleStates()
	planned := map[string]bool{}
	for _, s := range states.List {
		planned[s.Name] = !s.Next.IsZero() && s.Next.After(states.Now)
	}
	for _, s := range e.schedules() {
		if s.Fault == "" && !s.Paused && !planned[s.Name] {
			return true
		}
	}
	return false
}

// schedules are those that are declared or were created; none where the store has none.
func (e *Engine) schedules() []pawl.ScheduleStatus {
	e.t.Helper()
	if _, ok := e.Store().(store.Schedules); !ok {
		return nil
	}
	list, err := e.Schedules(e.ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	return list
}

func (e *Engine) scheduleStates() (states store.ScheduleStates) {
	e.t.Helper()
	st, ok := e.Store().(store.Schedules)
	if !ok {
		return states
	}
	states, err := st.ScheduleStates(e.ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	return states
}
