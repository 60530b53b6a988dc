# Acre's front door. Meson and ninja do the work, out of tree: build/ is the product, its
# variants (sanitizers, clang, arm, fuzzers) are under build/variants/. Every target first
# lets scripts/setup install what it needs and the machine lacks; `make SETUP=true ...` skips that.

MESON   ?= meson
NINJA   ?= ninja
SETUP   ?= scripts/setup
PREFIX  ?= /usr/local
DESTDIR ?=
RUNS    ?= 1000000
SECONDS ?= 600
OPS     ?= 10000000
SOAK    ?= test_ledger_random
SEEDS   ?= 5000
N       ?= 300
EXCEPT  ?=
WITH    ?=

# Sanitizers check what -O1 leaves as well as what -O3 does, and build in half the time. The lines
# that tests reach are counted in the same run: a build and a run of their own take ten minutes more.
V    := build/variants
asan := -Db_sanitize=address,undefined -Db_coverage=true -Doptimization=1 \
        -Dc_args=-fno-sanitize-recover=all
tsan := -Db_sanitize=thread -Db_lundef=false -Doptimization=1
fuzz := -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
        -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all'

# The sanitizers of gcc 12 and clang 14 cannot map their shadow memory where the kernel uses 32
# random bits of address (recent default); without randomisation they run everywhere.
STEADY = $$(setarch -R true 2>/dev/null && echo setarch -R)
# LLVM (PoCL, HIPRTC) gives a thread it compiles in its own stack for signals, unless ASan's is large
# enough, which depends on the processor; at the thread's end gcc 12's ASan unmaps it as its own.
export ASAN_OPTIONS ?= use_sigaltstack=0
export UBSAN_OPTIONS ?= print_stacktrace=1
# A report ends the process: a runner that goes on after one would be believed.
export TSAN_OPTIONS ?= halt_on_error=1:second_deadlock_stack=1

# EXCEPT="NAME GLOB ...": programs that the slower runs leave out; WITH="...": long ones they add.
except = $(foreach name,$(EXCEPT),--except '$(name)') $(foreach name,$(WITH),--with '$(name)')

# $(call build,DIRECTORY,OPTIONS,ENVIRONMENT): configure once, then build.
define build
	@test -f $(1)/build.ninja || $(3) $(MESON) setup $(1) $(2)
	@$(NINJA) -C $(1)
endef

.DEFAULT_GOAL := all
.PHONY: all demo test test-long abuse sanitize tsan clang arm tidy fuzz soak sim crash gpu bench install clean help

all: ## Build everything into build/ (the default)
	@$(SETUP) build
	$(call build,build,-Dprefix=$(PREFIX))

demo: all ## See it work on this machine, in under a minute
	@scripts/demo

test: ## Build and run all tests except the long ones; the last line counts them
	@$(SETUP) build test
	$(call build,build,-Dprefix=$(PREFIX))
	@test -f $(V)/asan/build.ninja || $(MESON) setup $(V)/asan $(asan)
	@$(NINJA) -C $(V)/asan tests/unit/$(SOAK)
	@ACRE_SANITIZED=$(CURDIR)/$(V)/asan/tests/unit/$(SOAK) scripts/test build

test-long: ## Run the long tests: all cases in every way, soaks, full floods
	@$(SETUP) build test
	$(call build,build,-Dprefix=$(PREFIX))
	@scripts/test --long build

abuse: ## Test real users against a real root daemon: none may become root or lock others out
	@$(SETUP) build test
	$(call build,build,-Dprefix=$(PREFIX))
	@scripts/test --only 'abuse_*' --except '*_long' build

sanitize: ## Run all tests under ASan and UBSan, and print line coverage; fails if it is too low
	@$(SETUP) build test coverage
	$(call build,$(V)/asan,$(asan))
	@$(STEADY) scripts/coverage $(except) $(V)/asan

tsan: ## Run the tests of code with threads under clang's ThreadSanitizer
	@$(SETUP) build test clang
	$(call build,$(V)/tsan,$(tsan),CC=clang)
	@$(STEADY) scripts/test --slower 20 --except 'ledger*' --except 'sched*' --except 'sim*' \
	    --except 'scripts*' $(except) $(V)/tsan

clang: ## Build with clang, warnings as errors, and run all tests
	@$(SETUP) build test clang
	$(call build,$(V)/clang,,CC=clang)
	@scripts/test $(V)/clang

arm: ## Cross-build for aarch64 and run the tests that qemu-user can
	@$(SETUP) build test arm
	@MESON=$(MESON) NINJA=$(NINJA) scripts/arm $(V)/arm

tidy: ## Check format, sizes, includes, banned calls, banned words and more
	@$(SETUP) tidy
	@scripts/tidy

fuzz: ## Run every fuzzer for RUNS=1000000 executions, at most SECONDS=600 each
	@$(SETUP) build fuzz
	@test -f $(V)/fuzz/build.ninja || CC=clang $(MESON) setup $(V)/fuzz $(fuzz)
	@$(NINJA) -C $(V)/fuzz fuzzers
	@$(STEADY) scripts/fuzz --runs $(RUNS) --seconds $(SECONDS) $(V)/fuzz

soak: ## Run the ledger against its oracle for OPS=10000000 random operations, sanitized
	@$(SETUP) build test
	$(call build,$(V)/asan,$(asan))
	@ACRE_SOAK=1 ACRE_SOAK_OPS=$(OPS) $(STEADY) $(V)/asan/tests/unit/$(SOAK)

sim: all ## Run the scheduler under injected faults with SEEDS=5000 seeds
	@build/acre simulate faults --seeds $(SEEDS)

crash: all ## Kill the daemon N=300 times under load and check that nothing is lost
	@scripts/crash --count $(N) build/acre

gpu: all ## Check the compute runtime on this machine's NVIDIA GPU (20 minutes)
	@scripts/gpu build

bench: ## Run all benchmarks and print Markdown with their JSON
	@$(SETUP) build bench >&2
	@$(MAKE) --no-print-directory all >&2
	@scripts/bench build

install: all ## Install under PREFIX=/usr/local (DESTDIR= for packagers)
	@$(MESON) configure build -Dprefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) $(MESON) install -C build
	@test -n "$(DESTDIR)" || ldconfig 2>/dev/null || true

clean: ## Remove build/ and all variants
	rm -rf build

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
