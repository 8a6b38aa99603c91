package pawl

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

// Every counter of the runner is shown: one that is added there and forgotten
// here would stay zero for ever, in silence.
func TestStatsShowEveryCounter(t *testing.T) {
	var s runner.Stats
	from := reflect.ValueOf(&s).Elem()
	for i := range from.NumField() {
		switch f := from.Field(i); f.Interface().(type) {
		case uint64:
			f.SetUint(uint64(i + 1))
		case int, job.WorkerID:
			f.SetInt(int64(i + 1))
		case bool:
			f.SetBool(true)
		case time.Time:
			f.Set(reflect.ValueOf(time.Unix(int64(i), 0)))
		case map[job.OutcomeKind]uint64:
			f.Set(reflect.ValueOf(map[job.OutcomeKind]uint64{job.Failed: 7}))
		case []runner.Stuck:
			f.Set(reflect.ValueOf([]runner.Stuck{{ID: job.NewID(), Run: 3, Kind: "k", Queue: "q", Since: time.Unix(9, 0), Cause: errors.New("why")}}))
		default:
			t.Fatalf("fill a field of type %v for this test", f.Type())
		}
	}
	to := reflect.ValueOf(statsOf(s))
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		got := to.FieldByName(name)
		if !got.IsValid() {
			t.Errorf("Stats has no field %s", name)
			continue
		}
		if name == "Stuck" {
			if got.Len() != 1 || got.Index(0).Interface() != Stuck(s.Stuck[0]) {
				t.Errorf("Stuck is %v", got)
			}
			continue
		}
		if !reflect.DeepEqual(got.Interface(), from.Field(i).Interface()) {
			t.Errorf("%s is %v, want %v", name, got, from.Field(i))
		}
	}
}
