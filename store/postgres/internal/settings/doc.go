// Package settings is what operators have set (pauses of queues), with the audit
// of what they did.
package settings
