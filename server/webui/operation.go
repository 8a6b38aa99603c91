package webui

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pawlwork/pawl"
)

// done are the verbs of operations, as what was done and what is being done.
var done = map[pawl.VerbName][2]string{
	pawl.VerbRetry: {"Retried", "Retrying"}, pawl.VerbCancel: {"Cancelled", "Cancelling"}, pawl.VerbDelete: {"Deleted", "Deleting"},
	pawl.VerbRequeue: {"Moved", "Moving"}, pawl.VerbPriority: {"Changed the priority of", "Changing the priority of"},
}

// operationText says how far an operation is, or what it came to.
func operationText(o *pawl.Operation) string {
	words, ok := done[o.Verb.Name]
	if !ok {
		words = [2]string{string(o.Verb.Name), string(o.Verb.Name)}
	}
	changed, left := o.Counts.Changed+o.Counts.Asked, o.Counts.Looked-o.Counts.Changed-o.Counts.Asked
	text := fmt.Sprintf("%s jobs: %s so far", words[1], count(changed))
	if o.State != pawl.OperationOpen {
		text = fmt.Sprintf("%s %s", words[0], plural(exactly(changed), "job", "jobs"))
	}
	if left > 0 {
		text += fmt.Sprintf(", %s left as they were", count(left))
	}
	switch o.State {
	case pawl.OperationCancelled:
		text += ", then stopped"
	case pawl.OperationFailed:
		text += ", then failed"
	}
	return text + "."
}

func stopOperation(a *act) (*outcome, error) {
	id, err := a.jobID()
	if err != nil {
		return nil, err
	}
	o, err := a.app.e.CancelOperation(a.ctx, id)
	if err != nil {
		return nil, err
	}
	return &outcome{Text: "Stopped. What was done stays done.", More: operationText(&o)}, nil
}

// told are the newest operations whose end the answer to who began them tells: the frame does not say it a second time.
type told struct {
	mu  sync.Mutex
	ids []pawl.ID
}

// maxTold is far more than end in the seconds in which the frame would show them.
const maxTold = 100

func (t *told) add(id pawl.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids = append(t.ids[max(len(t.ids)-maxTold+1, 0):], id)
}

func (t *told) drop(id pawl.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids = slices.DeleteFunc(t.ids, func(one pawl.ID) bool { return one == id })
}

func (t *told) has(id pawl.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.ids, id)
}
