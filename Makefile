export CGO_ENABLED = 0
# Tests that need more than Go run, and fail if a tool is missing (livetest.NeedsTools).
export REFRAME_TOOLS = 1
# Without the directory in them, the packages in Go's build cache serve every clone.
export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -trimpath
# Go and the tests keep what they make below the home directory, which not every CI names.
export HOME ?= $(shell getent passwd "$$(id -u)" | cut -d: -f6)
FUZZTIME ?= 30s
# Flags of make test for go test; not from the environment.
RUN :=
PREFIX ?= /usr/local

.PHONY: all build install uninstall demo check test test-all rotate fidelity anywhere goalone bench lint cross fuzz man generate release release-check

all build:
	go build -trimpath -o reframe ./cmd/reframe

# The program, its files for gdb and lldb, its manual pages and its completions below DESTDIR and PREFIX.
SHARE = $(DESTDIR)$(PREFIX)/share
install: build
	@$(MAKE) --no-print-directory man REFRAME=./reframe
	install -Dm755 reframe $(DESTDIR)$(PREFIX)/bin/reframe
	install -Dm644 -t $(SHARE)/reframe $(MANUALS)/reframe_gdb.py $(MANUALS)/reframe_lldb.py
	install -Dm644 -t $(SHARE)/man/man1 $(MANUALS)/man1/*.1
	install -Dm644 -t $(SHARE)/bash-completion/completions $(MANUALS)/bash/reframe
	install -Dm644 -t $(SHARE)/zsh/site-functions $(MANUALS)/zsh/_reframe
	install -Dm644 -t $(SHARE)/fish/vendor_completions.d $(MANUALS)/fish/reframe.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/reframe $(SHARE)/man/man1/reframe.1 $(SHARE)/man/man1/reframe-*.1 \
	  $(SHARE)/bash-completion/completions/reframe $(SHARE)/zsh/site-functions/_reframe $(SHARE)/fish/vendor_completions.d/reframe.fish \
	  $(SHARE)/reframe/reframe_gdb.py $(SHARE)/reframe/reframe_lldb.py

# Archives, packages and their checksums of the commit that is checked out, in dist/release.
release:
	go run ./scripts/release -o dist/release

# The same twice, in two directories and without anything kept from one build to the next: the same bytes must come of it.
release-check:
	scripts/release/check.sh

# The whole story on a built-in target; needs Go alone.
demo:
	@scripts/setup.sh demo
	@$(MAKE) --no-print-directory build
	@./reframe demo

# make check and make lint run go vet. Without DWARF, which the tests' own programs do not need, one is linked in half the time.
FASTER = -vet=off -ldflags=-w

# What one runs while working: gofmt, vet and the tests, without those that leave themselves out for the time they take (livetest.Slow). Packages
# that have not changed are remembered.
check:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt'd: $$unformatted"; exit 1; }
	go vet ./...
	go test $(FASTER) -short ./...

# Runs the tests of packages, and says at the end which took the longest.
RESULTS = dist/tests.json
define run-tests
	@mkdir -p $(dir $(RESULTS))
	go tool gotestsum --format standard-quiet --jsonfile $(RESULTS) -- $(1); status=$$?; \
	  echo "the slowest:"; go tool gotestsum tool slowest --num 10 --jsonfile $(RESULTS) | sed 's/^/  /'; \
	  [ $$status = 0 ] || echo "FIDELITY=$${FIDELITY:-$$(cat test/livetest/selection.txt)} selects the same cases"; exit $$status
endef

# One package more than there are processors is tested at a time, as tests wait, too.
# Installs what is missing (LLVM, clang, lld, gdb, elfutils, gcc, csmith, qemu-user, Node, a JDK, numba: scripts/setup.sh), then runs the
# fast tests and an eighth of the slow ones (make rotate chooses the next).
test:
	@scripts/setup.sh test
	@scripts/sources.sh
	@scripts/clients.sh
	@scripts/kernel.sh
	@scripts/prune.sh
	$(call run-tests,$(FASTER) -p $$(($$(nproc) + 1)) -timeout 85m $(RUN) ./...)

# Every test, each with its share of the cases: also the slow ones that have no turn in this selection.
test-all:
	@$(MAKE) --no-print-directory test RUN='-run .'

# Selects other cases for the shares of make test, and the next eighth of its slow tests.
rotate:
	selected=$$(($$(cat test/livetest/selection.txt) + 1)) && echo "$$selected" >test/livetest/selection.txt

# Every case of every test, of which make test runs a share: all programs that the interpreter is held against, all mutated stack maps that verify
# must find, 100,000 exits of instrumented programs, every byte of the files that are broken, all kills that a traced process must survive, 10,000 patches of running code, a million
# exits of random programs, 20,000 moments of patched code, 10,000 stacks of JITs that compile again, all exits of 1,000 programs of tinyvm; and what make test has not at all: releases, and LLVM's own tests. It takes hours.
fidelity:
	@scripts/setup.sh test
	@scripts/sources.sh llvm-tests
	@scripts/clients.sh
	@scripts/kernel.sh
	FIDELITY=all go test -timeout 90m -skip '^TestExitsAreAsInterpreted$$' ./test/fidelity
	FIDELITY=all go test -timeout 480m -v -run '^TestExitsAreAsInterpreted$$' ./test/fidelity
	FIDELITY=all go test -timeout 240m -v ./test/fidelity/truth
	FIDELITY=all go test -timeout 120m -v ./test/fidelity/patches
	FIDELITY=all go test -timeout 120m -v ./test/fidelity/tiers
	FIDELITY=all go test -timeout 480m -v ./test/fidelity/vmframes
	FIDELITY=all go test $(FASTER) -timeout 120m $$(go list ./... | grep -v /fidelity)

# The fast part of the tests under some forty conditions of other machines, CIs and shells: about forty minutes on an idle machine with
# two processors. scripts/anywhere.sh CONDITION... runs some of them, and -n 5 each so many times.
anywhere:
	@scripts/setup.sh test
	scripts/anywhere.sh

# The tests that need only Go, without any other program.
goalone:
	scripts/goalone.sh

bench:
	@scripts/setup.sh test
	@scripts/sources.sh
	go run ./bench

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt'd: $$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	go run ./scripts/prose check

# Builds for every system on which the offline verbs work (doc/user/platforms.md).
cross:
	scripts/cross.sh

# Every fuzz target, each for FUZZTIME (30s, or 5000x for a number of inputs).
fuzz:
	scripts/fuzz.sh $(FUZZTIME)

# Manual pages, completion scripts and the files for gdb and lldb, made from the commands, into the directory MANUALS: man1/*.1, bash/reframe,
# zsh/_reframe, fish/reframe.fish, reframe_gdb.py and reframe_lldb.py. The same source gives the same bytes.
MANUALS = dist/manuals
REFRAME = go run ./cmd/reframe
man:
	mkdir -p $(MANUALS)/bash $(MANUALS)/zsh $(MANUALS)/fish
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH-$$(git log -1 --format=%ct 2>/dev/null)} $(REFRAME) man $(MANUALS)/man1
	$(REFRAME) completion bash >$(MANUALS)/bash/reframe
	$(REFRAME) completion zsh >$(MANUALS)/zsh/_reframe
	$(REFRAME) completion fish >$(MANUALS)/fish/reframe.fish
	$(REFRAME) gdb >$(MANUALS)/reframe_gdb.py
	$(REFRAME) lldb >$(MANUALS)/reframe_lldb.py

# What is committed and made by a program.
generate:
	internal/demo/build.sh
	go generate ./...
