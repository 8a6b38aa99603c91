// Package hints tells of commits made by other processes on the same file.
package hints
