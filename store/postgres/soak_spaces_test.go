//go:build soak

package postgres_test

import (
	"testing"
	"time"
)

// TestSoak_F12_AHundredIdleNamespaces counts what a hundred engines in one process
// send while nothing happens, through everything that is periodic.
func TestSoak_F12_AHundredIdleNamespaces(t *testing.T) {
	const n, window = 100, 2 * time.Minute
	spaces, p, sent := newSpaces(t)
	startTenants(t, spaces, n)
	time.Sleep(5 * time.Second) // stimulus: the looks that follow a start are over
	sent.take()
	time.Sleep(window) // stimulus: two minutes pass, in which every round comes
	rate := float64(len(sent.take())) / window.Seconds()
	var connections int
	err := p.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_setting('application_name')").Scan(&connections)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d idle namespaces send %.1f statements a second over %d connections", n, rate, connections)
	if rate >= 10 {
		t.Errorf("%.1f statements a second, want less than 10", rate)
	}
}
