# One command each. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test check fault soak bench screenshots \
	check-format check-vet check-static check-house check-tidy check-generated

# Every module of go.work.
MODULES = $(shell go list -m -f '{{.Dir}}')
PACKAGES = $(addsuffix /...,$(MODULES))

# Tests that are too long for every run: files with `//go:build fault` hold TestFault_*, those with `//go:build soak` hold
# TestSoak_*. PAWL_FAULT says how long a fault test goes on: short, with a fixed seed, or long.
LONG_TAGS := fault,soak
packages_tagged = $(sort $(addprefix ./,$(dir $(shell git grep -lE --untracked '^//go:build .*\b($(1))\b' -- '*_test.go'))))
packages_fuzzed = $(sort $(addprefix ./,$(dir $(shell git grep -lE --untracked '^func Fuzz' -- '*_test.go'))))
TEST_TIMEOUT ?= 30m

# All of our code runs under the race detector. SQLite itself, translated to Go, does not: it starts no goroutine, each
# connection has its own memory, and instrumenting it makes every test on it ten times slower.
RACE := -race -gcflags=github.com/ncruces/go-sqlite3-wasm/...=-race=false

# $(UNDER) command: runs it beside private Postgres, Redis and NATS; see internal/testenv. Not by `go run`, which passes no
# signals on and leaves its own files when killed: here testenv takes the shell's place, and its program lies in the folder
# that it removes.
UNDER = dir=$$(mktemp -d "$${TMPDIR:-/tmp}/pawl-XXXXXXXX"); trap 'rm -rf "$$dir"' EXIT; \
	go build -o "$$dir/testenv" ./internal/testenv; \
	exec "$$dir/testenv" $(TESTENV_FLAGS) -dir "$$dir" --

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## a living small company to look at, on an embedded store, until Ctrl-C; see docs/demo.md
	@dir=$$(mktemp -d "$${TMPDIR:-/tmp}/pawl-XXXXXXXX"); trap 'rm -rf "$$dir"' EXIT; \
	echo 'building pawl: a minute or two the first time'; \
	go build -o "$$dir/pawl" ./server/cmd/pawl; \
	trap : INT; trap 'kill "$$demo"' TERM; "$$dir/pawl" demo & demo=$$!; \
	wait "$$demo" || while kill -0 "$$demo" 2>/dev/null; do wait "$$demo" || :; done # a signal ends a wait, not the demo

test: ## every test, with -race, beside private servers; a suite that cannot run is a failure
	@$(UNDER) go test $(RACE) -timeout $(TEST_TIMEOUT) $(PACKAGES)

check: check-format check-vet check-static check-tidy check-generated check-house ## format, vet, staticcheck, the rules of the house, tidy modules, generated files

fault: ## the short, seeded fault tests, with -race, then 20 s of fuzzing
	@packages='$(call packages_tagged,fault)'; \
	if [ -z "$$packages" ]; then echo 'fault: there are no fault tests yet'; exit; fi; \
	export PAWL_FAULT=short; \
	$(UNDER) go test $(RACE) -timeout $(TEST_TIMEOUT) -tags fault -run '^TestFault' $$packages
	@go run ./internal/testenv/fuzz -time 20s $(packages_fuzzed)

soak: ## the long fault tests and those that measure, without -race, 5 minutes of fuzzing, then internal/breaks; writes docs/soak.md
	@packages='$(call packages_tagged,fault|soak)'; \
	export PAWL_FAULT=long; \
	$(UNDER) go run ./internal/testenv/soak -o docs/soak.md -fuzz '$(packages_fuzzed)' -- \
		$${packages:+-p 1 -count 1 -timeout 60m -tags $(LONG_TAGS) -run '^Test(Fault|Soak)' $$packages}

bench: ## what batching costs, then Pawl and its peers in one run
	go test -run '^$$' -bench . -benchmem ./batch
	@if [ ! -e bench/go.mod ]; then exit; fi; \
	$(UNDER) env GOWORK=off go -C bench run . # its own choice of versions, not the workspace's

screenshots: LIVE ?= 75s
screenshots: ## a picture of every page of Mission Control, of a demo that lives for LIVE; writes docs/screenshots
	@go run ./server/internal/shots -to docs/screenshots -live $(LIVE)

check-format:
	@echo 'check: format'
	@wrong=$$(git ls-files --cached --others --exclude-standard -- '*.go' | while read -r file; do [ ! -e "$$file" ] || echo "$$file"; done | xargs -r gofmt -l); \
	[ -z "$$wrong" ] || { echo "not formatted, run gofmt -w:"; echo "$$wrong"; exit 1; }

check-vet: # the root module also as its users see it, without the workspace
	@echo 'check: vet'
	@go vet -tags $(LONG_TAGS) $(PACKAGES)
	@GOWORK=off go vet ./...

check-static:
	@echo 'check: staticcheck'
	@go tool staticcheck -tags $(LONG_TAGS) $(PACKAGES)

check-tidy:
	@echo 'check: tidy modules'
	@for module in $(MODULES); do \
		GOWORK=off go -C "$$module" mod tidy -diff || { echo "run go mod tidy in $$module"; exit 1; }; done

check-generated: # compares before and after, so that it also works in a tree with changes
	@echo 'check: generated files'
	@if git grep -q --untracked '^//go:generate ' -- '*.go'; then \
		before=$$(git diff; git status --porcelain); \
		go generate $(PACKAGES); \
		[ "$$before" = "$$(git diff; git status --porcelain)" ] || { git status --short; echo 'generated files were out of date'; exit 1; }; fi

check-house:
	@echo 'check: rules of the house'
	@go test ./internal/archtest
