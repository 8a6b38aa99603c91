//go:build !linux

package main

import "time"

// wait lasts as long as the system's timers make of it.
func wait(d time.Duration) { time.Sleep(d) }
