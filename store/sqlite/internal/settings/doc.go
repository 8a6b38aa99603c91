// Package settings keeps what operators have set, such as paused queues, and the
// record of what they did.
package settings
