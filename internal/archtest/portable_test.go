package archtest

import (
	"bytes"
	"fmt"
	"net/url"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

// What is committed works on every machine: no path of the machine it was written on, and no name of the host that
// packages came from, since who clones the project has a mirror of their own or none.
var (
	// The slash must begin a path: a folder called work inside the repository is nobody's machine.
	machinePath = regexp.MustCompile(`(^|[^\w.\-/])/(work|root|home|Users)/`)

	registryHost = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
		`(proxy|sum|index)\.golang\.org`, `goproxy\.(io|cn)`,
		`registry\.[\w-]+\.(com|org|net|io)`, `(pypi|pythonhosted)\.org`, `static\.crates\.io`,
		`(deb|security|snapshot)\.debian\.org`, `(archive|security)\.ubuntu\.com`,
		`(docker|ghcr|quay|gcr)\.io`, `[\w-]+\.pkg\.dev`,
	}, "|") + `)\b`)
)

// checkPortable reads every line of a text file. The hosts are those this machine is set to use.
func checkPortable(f file, hosts []string) []string {
	if f.binary() {
		return nil
	}
	var findings []string
	number := 0
	for line := range bytes.Lines(f.text) {
		number++
		where := fmt.Sprintf("%s:%d", f.path, number)
		if found := machinePath.FindSubmatch(line); found != nil {
			findings = append(findings, fmt.Sprintf("%s: a path below /%s belongs to one machine", where, found[2]))
		}
		if host := registryHost.Find(line); host != nil {
			findings = append(findings, fmt.Sprintf("%s: %s is a registry's host name", where, host))
			continue
		}
		for _, host := range hosts {
			if bytes.Contains(line, []byte(host)) {
				findings = append(findings, where+": the host this machine gets its modules from")
			}
		}
	}
	return findings
}

// moduleHosts names the hosts of this machine's GOPROXY.
func moduleHosts(goproxy string) []string {
	var hosts []string
	for _, part := range strings.FieldsFunc(goproxy, func(r rune) bool { return r == ',' || r == '|' }) {
		if u, err := url.Parse(strings.TrimSpace(part)); err == nil && u.Hostname() != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

func TestPortable_NoMachineAndNoRegistryIsNamed(t *testing.T) {
	goproxy, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	hosts := moduleHosts(string(goproxy))
	for _, f := range tree(t) {
		for _, finding := range checkPortable(f, hosts) {
			t.Error(finding)
		}
	}
}

// The violations are put together here, so that this file holds none.
func TestPortable_RuleCatches(t *testing.T) {
	const slash = "/"
	for _, text := range []string{
		"cd " + slash + "work/main", slash + "root/.cache", `"` + slash + "home/ada/pawl\"", "=" + slash + "Users/ada", "(" + slash + "work/)",
	} {
		finds(t, checkPortable(mustParse(t, "docs/x.md", "fine\n"+text+"\n"), nil), "docs/x.md:2: a path below")
	}
	for _, text := range []string{
		"proxy." + "golang.org", "https://registry." + "npmjs.org/x", "FROM ghcr." + "io/x/y", "deb." + "debian.org", "PYPI." + "org",
	} {
		finds(t, checkPortable(mustParse(t, "Makefile", text), nil), "is a registry's host name")
	}
	finds(t, checkPortable(mustParse(t, "Makefile", "GOPROXY=https://modules.example/x"), moduleHosts("https://modules.example/x,direct")), "this machine gets its modules from")

	for _, text := range []string{
		"./work/x", "job" + slash + "work/x", "https://example.org" + slash + "work/x", "golang.org/x/sys", "127.0.0.1:7340",
	} {
		finds(t, checkPortable(mustParse(t, "docs/x.md", text), nil))
	}
	finds(t, checkPortable(mustParse(t, "x.png", "\x00 "+slash+"root/x"), nil))
}

// mostBytes is the most that one committed file may have: what is larger was built, and everybody who clones the project
// has it for ever.
const mostBytes = 1 << 20

// checkSource refuses what a build leaves behind: large files, and bytes that are no picture.
func checkSource(f file) []string {
	switch {
	case len(f.text) > mostBytes:
		return []string{fmt.Sprintf("%s has %d bytes, at most %d", f.path, len(f.text), mostBytes)}
	case f.binary() && path.Ext(f.path) != ".png":
		return []string{f.path + " is neither text nor a picture"}
	}
	return nil
}

func TestPortable_NothingBuiltIsCommitted(t *testing.T) {
	for _, f := range tree(t) {
		for _, finding := range checkSource(f) {
			t.Error(finding)
		}
	}
}

func TestPortable_RuleCatchesWhatWasBuilt(t *testing.T) {
	program := "\x7fELF\x02\x01\x01\x00"
	finds(t, checkSource(file{path: "bench/bench", text: []byte(program)}), "neither text nor a picture")
	finds(t, checkSource(file{path: "docs/large.md", text: bytes.Repeat([]byte("a"), mostBytes+1)}), "at most")
	finds(t, checkSource(file{path: "docs/shot.png", text: []byte(program)}))
	finds(t, checkSource(file{path: "docs/small.md", text: []byte("a")}))
}
