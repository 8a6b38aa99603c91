// Package workers keeps the registry: who works on the file, until when its
// lease holds, and who shares a total.
package workers
