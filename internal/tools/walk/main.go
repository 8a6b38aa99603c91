// Command walk draws docs/walk.md: every function of ours that one plain job passes from Enqueue to purge, on SQLite and on
// Postgres. It measures: it builds onejob with counters, runs it on each store, and takes the functions that ran for nine
// of ten of its jobs, or more. Nesting and order come from the text of those functions. A step of the walk is a function of more than
// three statements; the page counts the steps, and beside them all functions. docs/adr/0011-counting-the-walk.md says why.
//
//	go run ./internal/testenv -- go run ./internal/tools/walk
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// postgresVariable is what internal/testenv sets: the URL of a superuser's database.
const postgresVariable = "PAWL_TEST_POSTGRES"

func main() {
	out := flag.String("o", "docs/walk.md", "the page, from the top of the repository")
	windows := flag.Int("windows", 20, "jobs to measure on each store")
	flag.Parse()
	if err := run(*out, *windows); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

func run(out string, windows int) error {
	server := os.Getenv(postgresVariable)
	if server == "" {
		return errors.New(postgresVariable + " is not set: go run ./internal/testenv -- go run ./internal/tools/walk")
	}
	work, err := exec.Command("go", "env", "GOWORK").Output()
	if err != nil {
		return fmt.Errorf("go env GOWORK: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(work)))
	s, err := readSource(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pawl-walk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "onejob")
	if err := build(root, bin); err != nil {
		return err
	}
	postgres, err := ownSchema(server, filepath.Base(dir))
	if err != nil {
		return err
	}
	var walks []walk
	for _, store := range []struct{ name, address string }{
		{"SQLite", "sqlite:" + filepath.Join(dir, "work.db")},
		{"Postgres", postgres},
	} {
		seen, err := measure(s, bin, store.address, filepath.Join(dir, store.name), windows)
		if err != nil {
			return fmt.Errorf("%s: %w", store.name, err)
		}
		ran := map[*function]bool{}
		for fn, times := range seen {
			if ofTheJob(times, windows) && others[fn.name] == "" {
				ran[fn] = true
			}
		}
		d, err := draw(s, ran)
		if err != nil {
			return fmt.Errorf("%s: %w", store.name, err)
		}
		walks = append(walks, walk{store.name, d})
		fmt.Printf("%s: %d steps, %d functions\n", store.name, d.steps(), len(ran))
		for _, fn := range s.functions {
			if n := seen[fn]; n > 0 && !ofTheJob(n, windows) {
				fmt.Printf("\t%s ran for %d of %d jobs and is left out\n", fn.name, n, windows)
			}
		}
	}
	for name := range others {
		if !slices.ContainsFunc(s.functions, func(fn *function) bool { return fn.name == name }) {
			return fmt.Errorf("others.go names %s, which is gone", name)
		}
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(out)), []byte(page(walks, windows)), 0o644)
}

// ownSchema is the address of the server with a schema that nobody else has.
func ownSchema(server, name string) (string, error) {
	address, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL: %w", postgresVariable, err)
	}
	query := address.Query()
	query.Set("pawl_schema", strings.ReplaceAll(name, "-", "_"))
	address.RawQuery = query.Encode()
	return address.String(), nil
}
