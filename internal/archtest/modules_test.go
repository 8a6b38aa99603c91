package archtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Every module that one of ours asks for by itself is explained in docs/dependencies.md: who adds one says why.
// bench is left out: its modules are the peers that Pawl is compared with, and no user ever gets them.
func checkModules(goMod, name, explained string) ([]string, error) {
	// The go command reads its own file format, so that this rule need not.
	out, err := exec.Command("go", "mod", "edit", "-json", goMod).Output()
	if err != nil {
		return nil, fmt.Errorf("go mod edit -json %s: %w", name, err)
	}
	var module struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	var asked []string
	for _, r := range module.Require {
		if !r.Indirect {
			asked = append(asked, r.Path)
		}
	}
	for _, tool := range module.Tool {
		asked = append(asked, tool.Path)
	}
	var findings []string
	for _, wanted := range asked {
		// The page writes each in code marks, so that one module's name cannot pass as a part of another's.
		if !strings.HasPrefix(wanted, modulePath) && !strings.Contains(explained, "`"+wanted+"`") {
			findings = append(findings, fmt.Sprintf("%s: `%s` is not explained in docs/dependencies.md", name, wanted))
		}
	}
	return findings, nil
}

func TestModules_AreExplained(t *testing.T) {
	root, err := top()
	if err != nil {
		t.Fatal(err)
	}
	var explained string
	var modules []string
	for _, f := range tree(t) {
		switch {
		case f.path == "docs/dependencies.md":
			explained = string(f.text)
		case path.Base(f.path) == "go.mod" && f.dir() != "bench":
			modules = append(modules, f.path)
		}
	}
	if explained == "" || len(modules) == 0 {
		t.Fatalf("docs/dependencies.md has %d bytes and there are %d modules: nothing to compare", len(explained), len(modules))
	}
	for _, name := range modules {
		findings, err := checkModules(filepath.Join(root, filepath.FromSlash(name)), name, explained)
		if err != nil {
			t.Error(err)
		}
		for _, finding := range findings {
			t.Error(finding)
		}
	}
}

func TestModules_RuleCatches(t *testing.T) {
	goMod := filepath.Join(t.TempDir(), "go.mod")
	text := `module example.org/x

go 1.26

tool example.org/lint/cmd/lint

require example.org/unexplained v1.0.0

require (
	example.org/taken v1.0.0
	example.org/below v1.0.0 // indirect
	` + modulePath + ` v0.0.0
)
`
	if err := os.WriteFile(goMod, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	findings, err := checkModules(goMod, "go.mod", "- `example.org/taken`: because. `example.org/unexplained/v2`: too.")
	if err != nil {
		t.Fatal(err)
	}
	finds(t, findings, "`example.org/unexplained`", "`example.org/lint/cmd/lint`")
}
