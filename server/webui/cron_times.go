package webui

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job/cron"
)

// cronTimes are when a schedule is due, after a time that is one of its due times: @every counts from there.
func cronTimes(s *pawl.ScheduleSettings, first time.Time, n int) (list []time.Time) {
	if first.IsZero() {
		return nil
	}
	zone, err := cron.Zone(s.Zone)
	if err != nil {
		return nil
	}
	list = append(list, first.In(zone))
	e, err := cron.Parse(s.Cron, zone)
	if err != nil {
		return list
	}
	e = e.Anchored(first)
	for len(list) < n {
		next := e.Next(list[len(list)-1])
		if next.IsZero() {
			break
		}
		list = append(list, next.In(zone))
	}
	return list
}

// cronPast are the newest n due times up to one that is known, the oldest first. They are those of the expression that holds now.
func cronPast(s *pawl.ScheduleSettings, last time.Time, n int) (list []time.Time) {
	if last.IsZero() || n <= 0 {
		return nil
	}
	zone, err := cron.Zone(s.Zone)
	if err != nil {
		return []time.Time{last}
	}
	if text, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s.Cron)), "@every "); ok {
		every, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || every <= 0 {
			return []time.Time{last}
		}
		for i := n - 1; i >= 0; i-- {
			list = append(list, last.Add(-time.Duration(i)*every))
		}
		return list
	}
	e, err := cron.Parse(s.Cron, zone)
	if err != nil {
		return []time.Time{last}
	}
	// Forward from further and further back: an expression can only be asked what comes next.
	for back := 32 * time.Second; ; back *= 4 {
		list = list[:0]
		looks := 0
		for at := e.Next(last.Add(-back)); !at.IsZero() && !at.After(last) && looks < maxDueLooks; at = e.Next(at) {
			list = append(list, at)
			looks++
		}
		if len(list) >= n || looks >= maxDueLooks || back > cron.Horizon {
			break
		}
	}
	if len(list) == 0 || !list[len(list)-1].Equal(last) {
		list = append(list, last) // another expression held then
	}
	return list[max(0, len(list)-n):]
}

// maxDueLooks bounds the due times that are looked at.
const maxDueLooks = 5000

// clockShift says that the clock of a schedule's zone changes in the next 24 hours, and what that means for it; empty otherwise.
func clockShift(s *pawl.ScheduleSettings, now time.Time) string {
	zone, err := cron.Zone(s.Zone)
	if err != nil || strings.HasPrefix(strings.TrimSpace(strings.ToLower(s.Cron)), "@every") {
		return ""
	}
	_, end := now.In(zone).ZoneBounds()
	if end.IsZero() || end.After(now.Add(24*time.Hour)) {
		return ""
	}
	_, before := end.Add(-time.Second).In(zone).Zone()
	_, after := end.In(zone).Zone()
	by, way := time.Duration(after-before)*time.Second, "forward"
	if by == 0 {
		return ""
	}
	rule := "A named time that it skips is due right after."
	if anyHour(s.Cron) {
		rule = "It is due whenever the clock shows its time."
	}
	if by < 0 {
		way = "back"
		if !anyHour(s.Cron) {
			rule = "A named time that it shows twice is due the first time."
		}
	}
	shows := time.Unix(end.Unix()+int64(before), 0).UTC() // what it would show
	return fmt.Sprintf("On %s the clock of %s goes %s %s. %s", shows.Format("2 Jan at 15:04"), zone, way, duration(by.Abs()), rule)
}

// anyHour reports whether the hour of an expression is any.
func anyHour(text string) bool {
	if full, ok := cronNames[strings.ToLower(strings.TrimSpace(text))]; ok {
		text = full
	}
	parts := strings.Fields(text)
	return len(parts) >= 5 && strings.Contains(parts[len(parts)-4], "*")
}

// UTC is a time in UTC, whatever was chosen to be shown.
func (v *view) UTC(t time.Time) string {
	if dayOf(t) == dayOf(v.Now) {
		return t.UTC().Format("15:04:05")
	}
	return dated(t, v.Now)
}

// Left is how long it is until a time.
func (v *view) Left(t time.Time) template.HTML { return left(v.Now, t) }

// InZone is a time in the zone that it is of.
func (v *view) InZone(t time.Time) string { return t.Format("Mon 2 Jan 15:04 MST") }

// StateOf is the state of a job as people see it.
func (v *view) StateOf(j *pawl.JobRecord) string { return stateOf(j, v.Now) }

// Block shows a text of several lines.
func (v *view) Block(s string, n int) template.HTML { return showBlock(s, n) }
