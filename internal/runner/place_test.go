package runner

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// Tasks that are moved at random are where a plain model says, in its order, and
// what is counted with a move agrees with it.
func TestPlace_ATaskIsWhereItWasMoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s tasks
		queues := [2]queue{}
		model := map[*list][]*Task{}
		all := make([]*Task, 8)
		for i := range all {
			all[i] = &Task{queue: &queues[i%2], weight: 1 << i}
		}
		leave := func(task *Task) {
			if task.place != placeNone {
				l := s.list(task, task.place)
				model[l] = slices.DeleteFunc(model[l], func(other *Task) bool { return other == task })
			}
		}
		somewhere := rapid.IntRange(int(placeFirst), int(placeOver))
		t.Repeat(map[string]func(*rapid.T){
			"move": func(t *rapid.T) {
				task, to := rapid.SampledFrom(all).Draw(t, "task"), place(somewhere.Draw(t, "to"))
				leave(task)
				s.move(task, to)
				model[s.list(task, to)] = append(model[s.list(task, to)], task)
			},
			"moveFirst": func(t *rapid.T) {
				task, to := rapid.SampledFrom(all).Draw(t, "task"), place(somewhere.Draw(t, "to"))
				leave(task)
				s.moveFirst(task, to)
				model[s.list(task, to)] = slices.Insert(model[s.list(task, to)], 0, task)
			},
			"let go": func(t *rapid.T) {
				task := rapid.SampledFrom(all).Draw(t, "task")
				leave(task)
				s.move(task, placeNone)
			},
			"": func(t *rapid.T) {
				var counts [places]int
				var bytes int
				var slots [2]int
				for l, want := range model {
					if got := l.copy(); !slices.Equal(got, want) || l.len() != len(want) {
						t.Fatalf("%v, want %v", got, want)
					}
					backward := 0
					for task := l.tail; task != nil; task = task.before {
						backward++
					}
					if backward != len(want) {
						t.Fatalf("%d tasks backward, want %d", backward, len(want))
					}
				}
				for i, task := range all {
					if task.place == placeNone {
						continue
					}
					counts[task.place]++
					if task.place.unstored() {
						bytes += task.weight
					}
					if task.place.takesSlot() {
						slots[i%2]++
					}
				}
				for p := placeFirst; p <= placeOver; p++ {
					if s.count(p) != counts[p] {
						t.Fatalf("%d tasks at %d, want %d", s.count(p), p, counts[p])
					}
				}
				if s.endBytes != bytes || queues[0].running != slots[0] || queues[1].running != slots[1] {
					t.Fatalf("%d bytes and %d, %d slots, want %d and %v", s.endBytes, queues[0].running, queues[1].running, bytes, slots)
				}
			},
		})
	})
}

// A task is allocated for each job: one more size class costs a drain its pace.
func TestTask_FitsItsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(Task{}); size > 1152 {
		t.Errorf("a task takes %d bytes", size)
	}
}
