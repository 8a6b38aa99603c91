package main

import (
	"bytes"
	"os"
	"strconv"
)

// peakRSS is the most memory the process has held resident, in megabytes. Getrusage will not do: its figure
// survives exec and begins with what the parent held.
func peakRSS() *float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kilobytes, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 64)
			if err != nil {
				return nil
			}
			megabytes := kilobytes / 1024
			return &megabytes
		}
	}
	return nil
}
