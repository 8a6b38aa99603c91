package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func TestJ29_LiveWorkersAreNamed(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	worker := func(id job.WorkerID, beat time.Duration, lost bool) WorkerInfo {
		return WorkerInfo{ID: id, Beat: now.Add(-beat), Lost: lost, Worker: Worker{Label: "mail", Host: "h1", Process: 7, LostAfter: time.Minute}}
	}
	quiet := []WorkerInfo{worker(1, time.Minute, false), worker(2, 0, true)}
	if err := CheckIdle(quiet, now); err != nil {
		t.Errorf("one that is silent and one that is lost: %v", err)
	}
	err := CheckIdle(append(quiet, worker(3, 59*time.Second, false)), now)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), `3 "mail" on h1, process 7`) || strings.Contains(err.Error(), "1 ") {
		t.Errorf("%v, want that it names worker 3 alone", err)
	}
	var many []WorkerInfo
	for id := range 100 {
		many = append(many, worker(job.WorkerID(id), 0, false))
	}
	if err := CheckIdle(many, now); len(err.Error()) > 400 || !strings.Contains(err.Error(), "and 95 more") {
		t.Errorf("%v, want the first five", err)
	}
	if err := CheckIdle([]WorkerInfo{worker(4, -time.Hour, false)}, now); !errors.Is(err, ErrInUse) {
		t.Errorf("one that beat ahead of the clock: %v", err)
	}
}
