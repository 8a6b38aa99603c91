package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// step is one thing that happens to the batcher. Its numbers choose among what there is at that moment.
type step struct {
	Kind       string
	Key, Which int
	Count      int
	Ending     string
	Time       time.Duration
}

func drawRules(t *rapid.T, policy string) modelRules {
	small := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	r := modelRules{
		policy:           policy,
		maxBatch:         small("MaxBatch", 4),
		concurrency:      small("Concurrency", 3),
		maxWaiting:       small("MaxWaiting", 3),
		totalConcurrency: small("TotalConcurrency", 4),
		totalItems:       small("TotalItems", 24),
		totalBytes:       small("TotalBytes", 60),
		weight:           small("weight", 7),
		acquires:         rapid.Bool().Draw(t, "acquires"),
	}
	if r.policy == "pace" {
		r.maxWaiting = 1
	}
	r.hint = rapid.IntRange(1, r.maxBatch).Draw(t, "hint")
	if r.policy != "immediate" && (r.policy != "balanced" || r.hint > 1) {
		r.wait = time.Duration(rapid.IntRange(1, 50).Draw(t, "wait")) * time.Microsecond
	}
	return r
}

func (r modelRules) options() Options {
	o := Options{
		MaxBatch: r.maxBatch, Concurrency: r.concurrency, MaxWaiting: r.maxWaiting, TotalConcurrency: r.totalConcurrency,
		TotalItems: r.totalItems, TotalBytes: r.totalBytes, MaxWait: r.wait, AcquireTimeout: time.Hour,
	}
	switch r.policy {
	case "size":
		o.Policy = Size()
	case "duration":
		o.Policy = Duration(r.wait)
	case "pace":
		o.Policy = Duration(r.wait).RejectWhenFull()
	case "balanced":
		o.Policy = Balanced(r.hint)
	}
	return o
}

var (
	drawStep = rapid.Custom(func(t *rapid.T) step {
		return step{
			Kind:   rapid.SampledFrom([]string{"arrive", "arrive", "arrive", "many", "leave", "process", "process", "acquire", "acquire", "time"}).Draw(t, "kind"),
			Key:    rapid.IntRange(0, 3).Draw(t, "key"),
			Which:  rapid.IntRange(0, 11).Draw(t, "which"),
			Count:  rapid.IntRange(1, 9).Draw(t, "count"),
			Ending: rapid.SampledFrom([]string{"ok", "ok", "ok", "error", "own errors", "miscount", "panic", "exit"}).Draw(t, "ending"),
			Time:   time.Duration(rapid.IntRange(1, 60).Draw(t, "time")) * time.Microsecond,
		}
	})
	drawSteps = rapid.SliceOfN(drawStep, 1, 80)
)

// The batcher and the plain model go through the same random steps in virtual time and must agree after each: the same
// batches with the same items in the same order, the same answers, the same counts.
func TestB1toB8_AgreesWithThePlainModel(t *testing.T) {
	for _, policy := range []string{"immediate", "size", "duration", "pace", "balanced"} {
		t.Run(policy, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rules := drawRules(rt, policy)
				steps := drawSteps.Draw(rt, "steps")
				patient := rapid.Bool().Draw(rt, "patient")
				var err error
				synctest.Test(t, func(t *testing.T) {
					trial := newTrial(rules)
					if err = trial.run(steps, patient); err != nil {
						trial.abort()
					}
				})
				if err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// trial is the batcher and the model side by side.
type trial struct {
	model     *model
	stage     stage
	batcher   *Batcher[string, int, int]
	callers   []*caller
	last      int         // item
	processed map[int]int // how often process has seen an item
}

type caller struct {
	key    string
	items  []int
	cancel context.CancelFunc
	done   chan struct{}
	outs   []int
	errs   []error
}

func newTrial(rules modelRules) *trial {
	tr := &trial{model: newModel(rules), processed: make(map[int]int)}
	work := tr.stage.work()
	work.Weigh = tr.model.weigh
	if !rules.acquires {
		work.Acquire, work.Release = nil, nil
	}
	tr.batcher = NewWork(work, rules.options())
	return tr
}

func (tr *trial) run(steps []step, patient bool) error {
	if err := tr.batcher.Err(); err != nil {
		return err
	}
	for i, s := range steps {
		tr.take(s)
		if err := tr.compare(); err != nil {
			return fmt.Errorf("after step %d, %+v: %w", i, s, err)
		}
	}
	return tr.close(patient)
}

func (tr *trial) take(s step) {
	switch s.Kind {
	case "arrive":
		tr.arrive(fmt.Sprint("key ", s.Key), 1)
	case "many":
		if tr.model.rules.acquires {
			s.Count = 1 // which of two acquisitions that start at once is whose cannot be told
		}
		tr.arrive(fmt.Sprint("key ", s.Key), s.Count)
	case "leave":
		waiting := slices.DeleteFunc(slices.Clone(tr.callers), (*caller).isDone)
		if len(waiting) > 0 {
			c := waiting[s.Which%len(waiting)]
			c.cancel()
			tr.model.leave(c.key, c.items)
		}
	case "process":
		tr.endProcess(s)
	case "acquire":
		tr.endAcquire(s)
	case "time":
		pass(s.Time)
		tr.model.advance(s.Time)
	}
	synctest.Wait()
}

// arrive happens a moment after anything else, so that no two keys are due at the same time.
func (tr *trial) arrive(key string, n int) {
	pass(1)
	tr.model.advance(1)
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{key: key, cancel: cancel, done: make(chan struct{})}
	for range n {
		tr.last++
		c.items = append(c.items, tr.last)
	}
	tr.callers = append(tr.callers, c)
	go func() {
		defer close(c.done)
		defer cancel()
		if len(c.items) == 1 {
			out, err := tr.batcher.Do(ctx, key, c.items[0])
			c.outs, c.errs = []int{out}, []error{err}
			return
		}
		outs, err := tr.batcher.DoMany(ctx, key, c.items)
		errs, _ := err.(Errors)
		if errs == nil {
			errs = make(Errors, n)
		}
		c.outs, c.errs = outs, errs
	}()
	synctest.Wait()
	tr.model.arrive(key, c.items)
}

func (tr *trial) endProcess(s step) {
	var running []*modelBatch
	for _, b := range tr.model.batches() {
		if b.processing {
			running = append(running, b)
		}
	}
	if len(running) == 0 {
		return
	}
	b := running[s.Which%len(running)]
	calls := tr.stage.processing()
	i := slices.IndexFunc(calls, func(c *call) bool { return c.key == b.key && slices.Equal(c.in, b.items) })
	tr.end(calls[i], s.Ending)
	tr.model.finish(b, func(_, item int) string { return answerTo(item, s.Ending) })
}

func (tr *trial) end(c *call, ending string) {
	for _, item := range c.in {
		tr.processed[item]++
	}
	switch ending {
	case "ok":
		c.succeed()
	case "error":
		c.fail(errBroken)
	case "own errors":
		c.end(func() ([]int, error) {
			errs := make(Errors, len(c.in))
			for i, item := range c.in {
				if item%2 == 0 {
					errs[i] = errBroken
				}
			}
			return tenfold(c.in), errs
		})
	case "miscount":
		c.end(func() ([]int, error) { return append(tenfold(c.in), 0), nil })
	case "panic":
		c.panics(ending)
	case "exit":
		c.exits()
	}
}

func answerTo(item int, ending string) string {
	switch ending {
	case "own errors":
		if item%2 == 0 {
			return "error"
		}
		return "ok"
	case "exit":
		return "panic"
	default:
		return ending
	}
}

func (tr *trial) endAcquire(s step) {
	var open []*modelBatch
	for _, b := range tr.model.batches() {
		if !b.processing {
			open = append(open, b)
		}
	}
	if len(open) == 0 {
		return
	}
	b := open[s.Which%len(open)]
	// The acquisitions of a key wait in the order in which its batches started.
	order := 0
	for _, other := range open {
		if other == b {
			break
		}
		if other.key == b.key {
			order++
		}
	}
	calls := slices.DeleteFunc(tr.stage.acquiring(), func(c *call) bool { return c.key != b.key })
	switch s.Ending {
	case "error":
		calls[order].fail(errBroken)
	case "panic":
		calls[order].panics("panic")
	case "exit":
		calls[order].exits()
	default:
		calls[order].succeed()
		tr.model.begin(b)
		return
	}
	tr.model.finish(b, func(_, item int) string { return answerTo(item, s.Ending) })
}

func (c *caller) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// compare says where the batcher and the model differ.
func (tr *trial) compare() error {
	m := tr.model
	var want, got []string
	acquiring := 0
	for _, b := range m.batches() {
		if b.processing {
			want = append(want, fmt.Sprint(b.key, b.items))
		} else {
			acquiring++
		}
	}
	perKey := make(map[string]int)
	for _, c := range tr.stage.processing() {
		got = append(got, fmt.Sprint(c.key, c.in))
		perKey[c.key]++
		if len(c.in) > m.rules.maxBatch || !slices.IsSorted(c.in) {
			return fmt.Errorf("the batch %v is too large or out of order", c.in)
		}
	}
	for _, c := range tr.stage.acquiring() {
		perKey[c.key]++
	}
	for key, n := range perKey {
		if n > m.rules.concurrency {
			return fmt.Errorf("%s has %d batches running", key, n)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("processing %v, want %v", got, want)
	}
	if n := len(tr.stage.acquiring()); n != acquiring {
		return fmt.Errorf("%d batches acquire, want %d", n, acquiring)
	}
	stats := Stats{Keys: len(m.keys), Items: m.items, Bytes: m.bytes, Running: len(m.batches())}
	if got := tr.batcher.Stats(); got != stats {
		return fmt.Errorf("stats %+v, want %+v", got, stats)
	}
	return tr.compareAnswers()
}

func (tr *trial) compareAnswers() error {
	for _, c := range tr.callers {
		complete := !slices.ContainsFunc(c.items, func(item int) bool { return tr.model.answers[item] == "" })
		if c.isDone() != complete {
			return fmt.Errorf("the caller with %v has its answer: %v, want %v", c.items, c.isDone(), complete)
		}
		for i, item := range c.items {
			if complete && tr.read(c, i) != tr.model.answers[item] {
				return fmt.Errorf("item %d: %s (%v), want %s", item, tr.read(c, i), c.errs[i], tr.model.answers[item])
			}
		}
	}
	return nil
}

// read names an answer in the model's words.
func (tr *trial) read(c *caller, i int) string {
	err := c.errs[i]
	var full *QueueFullError
	switch {
	case err == nil && c.outs[i] == 10*c.items[i]:
		return "ok"
	case errors.As(err, &full):
		return full.Limit
	case errors.Is(err, ErrOutcomeUnknown):
		return "unknown"
	case errors.Is(err, context.Canceled):
		return "left"
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, ErrPanic):
		return "panic"
	case errors.Is(err, ErrWrongOutputs):
		return "miscount"
	case errors.Is(err, errBroken):
		return "error"
	default:
		return fmt.Sprint("wrong: ", c.outs[i], err)
	}
}

// close ends the trial: in whatever order the rest is flushed, every item has exactly one answer, none was processed
// twice or after its caller had been told that it would not be, and nothing is left behind.
func (tr *trial) close(patient bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	busy := len(tr.model.keys) > 0
	if !patient {
		cancel()
		tr.model.abandon()
	}
	result := make(chan error, 1)
	go func() { result <- tr.batcher.Close(ctx) }()
	synctest.Wait()
	if !patient {
		if err := <-result; (err != nil) != busy {
			return fmt.Errorf("a hasty close of a batcher that is busy: %v, returned %v", busy, err)
		}
		if err := tr.compareAnswers(); err != nil {
			return fmt.Errorf("after a hasty close: %w", err)
		}
	}
	for {
		acquiring, processing := tr.stage.acquiring(), tr.stage.processing()
		if len(acquiring)+len(processing) == 0 {
			break
		}
		if len(acquiring)+len(processing) > tr.model.rules.totalConcurrency {
			return fmt.Errorf("%d batches run while closing", len(acquiring)+len(processing))
		}
		if len(acquiring) > 0 {
			acquiring[0].succeed()
		} else {
			tr.end(processing[0], "ok")
		}
	}
	if patient {
		if err := <-result; err != nil {
			return err
		}
	}
	for _, c := range tr.callers {
		if !c.isDone() {
			return fmt.Errorf("the caller with %v has no answer", c.items)
		}
		for i, item := range c.items {
			answer, seen := tr.read(c, i), tr.processed[item]
			processed := slices.Contains([]string{"ok", "miscount", "unknown"}, answer)
			refused := slices.Contains([]string{"left", "closed", "MaxBatch", "MaxWaiting", "TotalItems", "TotalBytes"}, answer)
			if seen > 1 || processed && seen != 1 || refused && seen != 0 || strings.HasPrefix(answer, "wrong") {
				return fmt.Errorf("item %d was processed %d times and answered with %s", item, seen, answer)
			}
		}
	}
	return leftBehind(tr.batcher)
}

// abort ends all goroutines of a trial that failed.
func (tr *trial) abort() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = tr.batcher.Close(ctx)
	for _, c := range tr.callers {
		c.cancel()
	}
	for {
		calls := append(tr.stage.acquiring(), tr.stage.processing()...)
		if len(calls) == 0 {
			return
		}
		calls[0].fail(errBroken)
	}
}
