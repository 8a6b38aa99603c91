package main

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// wait lasts as long as it says, like a call to somebody outside that takes that long: its end is an event of the
// poller. (Go's sleep of 1 ms takes 1.2 to 1.5 ms, the longer the busier the poller is: it waits for whole
// milliseconds, and begins anew after each event.)
func wait(d time.Duration) {
	a := alarms.Get().(*alarm)
	defer alarms.Put(a)
	if !a.ring(d) {
		time.Sleep(d)
	}
}

var alarms = sync.Pool{New: func() any {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return &alarm{}
	}
	return &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timer")}
}}

// alarm is a timer of the kernel's; without a file there is none to be had.
type alarm struct {
	fd   int
	file *os.File
	rung [8]byte
}

// ring waits until the time is over, and says whether it could.
func (a *alarm) ring(d time.Duration) bool {
	if a.file == nil {
		return false
	}
	if err := unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil); err != nil {
		return false
	}
	_, err := a.file.Read(a.rung[:])
	return err == nil
}
