package job_test

import (
	"testing"

	"github.com/pawlwork/pawl/job"
)

// Messages of one fault have one fingerprint, whatever they name; those of
// different faults have not.
func TestJ7_FingerprintIgnoresWhatDiffersFromCaseToCase(t *testing.T) {
	for _, same := range [][]string{
		{`order 17 of "ann": no such row`, `order 204 of "bob": no such row`, `order 3 of "": no such row`},
		{"user 'ann' not found", "user 'bob o' not found"},
		{"file `a.txt` not found", "file `b 2.txt` not found"},
		{"topic «orders» is full", "topic «mail» is full"},
		{"topic “orders” is full", "topic “mail” is full"},
		{"job 0193a1b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b is gone", "job 01939999-aaaa-7bbb-8ccc-dddddddddddd is gone"},
		{"nil pointer at 0xc000123abc", "nil pointer at 0xc0004F0000"},
		{"blob deadbeef01 is missing", "blob 0badcafe99 is missing"},
		{"digest abcdefabcdefabcdef does not match", "digest fedcbafedcbafedcba does not match"},
		{"dial tcp 10.0.0.1:5432: refused", "dial tcp 192.168.17.44:40000: refused"},
		{"worker-7 left", "worker-12 left"},
		{"retry in 1.5s", "retry in 12.25s"},
		{"shard7x is down", "shard12x is down"},
	} {
		for _, m := range same[1:] {
			if job.Fingerprint(m) != job.Fingerprint(same[0]) {
				t.Errorf("%q is %q and %q is %q", same[0], job.Template(same[0]), m, job.Template(m))
			}
		}
	}
	different := []string{
		"no such row", `order 17 of "ann": no such row`, `order 17 of "ann": connection refused`, "order 2,4: no such row", "a bad decade", "a bad facade",
		"can't open it's door", "can't open its door", "dead", "face", "worker left", "worker-x left", "an open ' quote", "an open \" quote",
	}
	for i, a := range different {
		for _, b := range different[i+1:] {
			if job.Fingerprint(a) == job.Fingerprint(b) {
				t.Errorf("%q and %q are both %q", a, b, job.Template(a))
			}
		}
	}
}
