package job

import "fmt"

// plural is the word for n of something, as sentences for people have it.
func plural[N int | float64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// times is "once" or "3 times".
func times(n int) string { return plural(n, "once", fmt.Sprintf("%d times", n)) }
