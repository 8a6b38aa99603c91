// Package metrics keeps what processes measure. It owns the tables pawl_metric and
// pawl_metric_flush. What a row's bytes mean, and what rows become when they are
// rolled up, is decided by package store; this room only moves them.
package metrics
