package telemetry

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// number is a variable that the SDK reads as a number, and its bounds.
type number struct {
	name        string
	least, most int
}

// longestPause bounds times, in milliseconds.
const longestPause = 24 * 60 * 60 * 1000

// What the SDK does with a wrong one is to log it and go on, or to panic.
var (
	traceNumbers = []number{
		{"OTEL_BSP_SCHEDULE_DELAY", 1, longestPause}, {"OTEL_BSP_EXPORT_TIMEOUT", 1, longestPause},
		{"OTEL_BSP_MAX_QUEUE_SIZE", 1, 1_000_000}, {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, 1_000_000},
		{"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", -1, math.MaxInt32}, {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", -1, math.MaxInt32},
		{"OTEL_SPAN_EVENT_COUNT_LIMIT", -1, math.MaxInt32}, {"OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", -1, math.MaxInt32},
		{"OTEL_SPAN_LINK_COUNT_LIMIT", -1, math.MaxInt32}, {"OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", -1, math.MaxInt32},
	}
	metricNumbers = []number{{"OTEL_METRIC_EXPORT_INTERVAL", 1, longestPause}, {"OTEL_METRIC_EXPORT_TIMEOUT", 1, longestPause}}
)

// checkNumbers refuses those that are none, or out of bounds.
func checkNumbers(list []number) error {
	var faults []error
	for _, one := range list {
		text := variable(one.name)
		if text == "" {
			continue
		}
		if n, err := strconv.Atoi(text); err != nil || n < one.least || n > one.most {
			faults = append(faults, fmt.Errorf("%s %.100q: must be a whole number, %d..%d", one.name, text, one.least, one.most))
		}
	}
	return errors.Join(faults...)
}
