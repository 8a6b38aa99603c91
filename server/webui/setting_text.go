package webui

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// How settings are shown, and read as people type them.

// countOrNone is a number, or that there is no bound.
func countOrNone(n int) string {
	if n <= 0 {
		return "none"
	}
	return count(n)
}

func isNone(text string) bool {
	return slices.Contains([]string{"none", "no", "off", "never", "unlimited"}, strings.ToLower(text))
}

// readCount reads 1 to most, or none where that is allowed, which is -1.
func readCount(text string, most int, none bool) (int, error) {
	if none && isNone(text) {
		return -1, nil
	}
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err == nil && (n < 1 || n > most) {
		err = strconv.ErrRange
	}
	return n, err
}

func spanOr(d, otherwise time.Duration, text func(time.Duration) string) string {
	d = cmp.Or(d, otherwise)
	if d <= 0 {
		return "none"
	}
	return text(d)
}

// spanWords is a duration that somebody chose: 1 s rather than 1.0 s.
func spanWords(d time.Duration) string { return strings.Replace(duration(d), ".0 s", " s", 1) }

// exactSpan is a duration as it is typed: 7d, 1h30m.
func exactSpan(d time.Duration) string {
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	text := ""
	if days > 0 {
		text = strconv.Itoa(int(days)) + "d"
	}
	if rest == 0 && days > 0 {
		return text
	}
	short := rest.String()
	if strings.HasSuffix(short, "m0s") {
		short = strings.TrimSuffix(short, "0s")
	}
	if strings.HasSuffix(short, "h0m") {
		short = strings.TrimSuffix(short, "0m")
	}
	return text + short
}

var spanDays = regexp.MustCompile(`^(\d+(?:\.\d+)?)d`)

// readSpan reads a duration: as Go has it, with days, and as pages show it (1 h 30 min).
func readSpan(text string) (time.Duration, error) {
	text = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(text), " ", ""), "min", "m"), ",", "")
	var days time.Duration
	if m := spanDays.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || n > 40_000 {
			return 0, strconv.ErrRange
		}
		days, text = time.Duration(n*float64(24*time.Hour)), text[len(m[0]):]
		if text == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(text)
	return days + d, err
}

func readSpanOrNone(text string, most time.Duration) (time.Duration, error) {
	if isNone(text) {
		return -1, nil
	}
	d, err := readSpan(text)
	if err == nil && (d <= 0 || d > most) {
		err = strconv.ErrRange
	}
	return d, err
}

func backoffText(b *job.BackoffSettings, text func(time.Duration) string) string {
	if b == nil {
		b = &job.BackoffSettings{}
	}
	if b.Off {
		return "at once"
	}
	grows := " doubling to "
	if f := cmp.Or(b.Factor, 2); f != 2 {
		grows = " times " + strconv.FormatFloat(f, 'f', -1, 64) + " to "
	}
	return text(cmp.Or(b.Base, job.BackoffBase)) + grows + text(cmp.Or(b.Max, job.BackoffMax))
}

var backoffForm = regexp.MustCompile(`^(.+?)\s+(?:doubling|times\s+([0-9.]+))\s+to\s+(.+)$`)

func readBackoff(text string) (*job.BackoffSettings, error) {
	text = strings.ToLower(text)
	if text == "at once" || isNone(text) {
		return &job.BackoffSettings{Off: true}, nil
	}
	m := backoffForm.FindStringSubmatch(text)
	if m == nil {
		return nil, strconv.ErrSyntax
	}
	b, err := &job.BackoffSettings{}, error(nil)
	if b.Base, err = readSpan(m[1]); err != nil {
		return nil, err
	}
	if b.Max, err = readSpan(m[3]); err != nil {
		return nil, err
	}
	if m[2] != "" {
		if b.Factor, err = strconv.ParseFloat(m[2], 64); err != nil {
			return nil, err
		}
	}
	if b.Base <= 0 || b.Max <= 0 || m[2] != "" && b.Factor < 1 {
		return nil, strconv.ErrRange
	}
	return b, nil
}
