export CGO_ENABLED = 0
FUZZTIME ?= 30s

.PHONY: all build demo test fidelity bench lint cross fuzz man generate

all build:
	go build -trimpath -o reframe ./cmd/reframe

# The whole story on a built-in target; needs Go alone.
demo:
	@scripts/setup.sh demo
	@$(MAKE) --no-print-directory build
	@./reframe demo

# Installs what is missing (LLVM, clang, lld, gdb, elfutils, gcc, csmith, qemu-user, Node, a JDK, numba: scripts/setup.sh), then runs everything.
test:
	@scripts/setup.sh test
	@scripts/sources.sh
	@scripts/kernel.sh
	go vet ./...
	go test -timeout 40m ./...

# All of the programs that the interpreter is held against, all mutated stack maps that verify must find and all kills that a traced
# process must survive, of which make test runs a share: about half an hour.
fidelity:
	@scripts/setup.sh test
	@scripts/sources.sh
	@scripts/kernel.sh
	FIDELITY=all go test -timeout 90m ./fidelity
	FIDELITY=all go test -timeout 60m ./deopt -run 'TestResumeAtEveryBlock|TestVerify'
	FIDELITY=all go test -timeout 60m ./cmd/reframe -run 'TestWatcherKilled|TestRoundTrip|TestReplayOfManyCores'

bench:
	@scripts/setup.sh test
	go run ./bench

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt'd: $$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

# Builds for every system on which the offline verbs work (doc/platforms.md).
cross:
	scripts/cross.sh

# Every fuzz target, each for FUZZTIME (30s, or 5000x for a number of inputs).
fuzz:
	scripts/fuzz.sh $(FUZZTIME)

# Manual pages and completion scripts, made from the commands, into the directory MANUALS: man1/*.1, bash/reframe, zsh/_reframe and
# fish/reframe.fish. The same source gives the same bytes.
MANUALS = dist/manuals
man:
	mkdir -p $(MANUALS)/bash $(MANUALS)/zsh $(MANUALS)/fish
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH-$$(git log -1 --format=%ct)} go run ./cmd/reframe man $(MANUALS)/man1
	go run ./cmd/reframe completion bash >$(MANUALS)/bash/reframe
	go run ./cmd/reframe completion zsh >$(MANUALS)/zsh/_reframe
	go run ./cmd/reframe completion fish >$(MANUALS)/fish/reframe.fish

# What is committed and made by a program.
generate:
	demo/build.sh
	go generate ./...
