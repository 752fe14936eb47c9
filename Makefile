export CGO_ENABLED = 0
FUZZTIME ?= 30s

.PHONY: all build demo test fidelity bench lint fuzz generate

all build:
	go build -trimpath -o reframe ./cmd/reframe

# The whole story on a built-in target; needs Go alone.
demo:
	@scripts/setup.sh demo
	@$(MAKE) --no-print-directory build
	@./reframe demo

# Installs what is missing (LLVM, clang, lld, gdb, elfutils, gcc, csmith, qemu-user, Node, a JDK: scripts/setup.sh), then runs everything.
test:
	@scripts/setup.sh test
	@scripts/sources.sh
	go vet ./...
	go test -timeout 20m ./...

# All of the programs that the interpreter is held against, of which make test runs a share: about ten minutes.
fidelity:
	@scripts/setup.sh test
	@scripts/sources.sh
	FIDELITY=all go test -timeout 90m ./fidelity
	FIDELITY=all go test -timeout 20m ./deopt -run TestResumeAtEveryBlock

bench:
	@scripts/setup.sh test
	go run ./bench

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt'd: $$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

# Every fuzz target, each for FUZZTIME (30s, or 5000x for a number of inputs).
fuzz:
	scripts/fuzz.sh $(FUZZTIME)

# What is committed and made by a program.
generate:
	demo/build.sh
	go generate ./...
