//go:build unix && !linux

package main

// adoptOrphans, endChildren and reapOrphans do nothing here: only Linux lets a process adopt orphans. Servers and command
// are still ended by process group.
func adoptOrphans() error { return nil }

func endChildren([]int) {}

func reapOrphans([]int) (stop func()) { return func() {} }

// watchLauncher never tells: it needs Linux' process handles.
func watchLauncher() <-chan struct{} { return nil }
