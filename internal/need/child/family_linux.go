package child

import (
	"bytes"
	"os"
	"strconv"
)

// Of lists the direct children of the process pid that are in /proc, zombies included. It is a snapshot: a caller that
// wants none left asks again until there are none.
func Of(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, entry := range entries {
		candidate, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if state, ok := stat(candidate); ok && state.parent == pid {
			children = append(children, candidate)
		}
	}
	return children, nil
}

// Ended reports whether the process pid is gone or only waits for its parent to notice.
func Ended(pid int) bool {
	state, ok := stat(pid)
	return !ok || state.code == 'Z' || state.code == 'X'
}

type status struct {
	code   byte
	parent int
}

// stat reads state and parent from /proc/pid/stat. They follow the program's name, which stands in parentheses and may
// itself contain some.
func stat(pid int) (status, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return status{}, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return status{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return status{code: fields[0][0], parent: parent}, err == nil
}
