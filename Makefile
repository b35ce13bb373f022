# SPDX-License-Identifier: Apache-2.0
# A thin front of meson; each target begins by saying what it does.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
PYTHON ?= .venv/bin/python3
MESON_FLAGS ?=
# lib: the loader looks there on Debian; meson by itself says lib64 where dpkg-dev is absent.
PLACES = -Dprefix="$(PREFIX)" -Dlibdir=lib

.PHONY: all setup web docs demo check check-peers check-long bench fuzz lint cover install uninstall clean

# A tool that is missing is named with the command that brings it.
needs = for t in $(1); do command -v $$t >/dev/null || { echo "$$t is missing: make setup installs it" >&2; exit 2; }; done

all: web $(BUILD)/build.ninja
	@ninja -C $(BUILD)

setup:
	@tools/bootstrap

$(BUILD)/build.ninja:
	@$(call needs,meson ninja pkg-config cc)
	@meson setup $(BUILD) $(PLACES) -Dtests=false -Dbuildtype=release $(MESON_FLAGS) >/dev/null

# The UI: built once, and again when a source of it changed.
web: $(if $(wildcard web/package.json),web/dist/index.html)
web/dist/index.html: $(wildcard web/package.json web/package-lock.json web/index.html web/src/* web/src/*/* web/src/*/*/*)
	@$(call needs,npm)
	@echo "web: npm ci, npm run build"
	@cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run build --silent -- --logLevel warn
	@touch $@

# Man pages and docs/reference from the tables; committed, and compared by make check.
docs: all
	@python3 tools/gen-docs $(BUILD)/tacho

demo:
	@echo "make demo: installs what it needs (Debian packages, .venv with JAX: about 300 MB of downloads the first time),"
	@echo "  builds tacho into $(BUILD)/, trains a small model to a planted crash and on to its end, prints its ledger and report, serves the UI."
	@tools/bootstrap demo
	@$(MAKE) -s all
	@PATH="$(CURDIR)/.venv/bin:$$PATH" TACHO_BIN="$(CURDIR)/$(BUILD)/tacho" tools/demo

check:
	@echo "make check: installs what it needs (Debian packages, .venv with pytest: about 450 MB of downloads the first time),"
	@echo "  builds into build-check/, build-asan/ and build-tsan/, runs unit, fuzz-corpus, golden, end-to-end and browser tests."
	@tools/bootstrap check
	@$(MAKE) -s web
	@$(PYTHON) tools/run-checks

check-peers:
	@echo "make check-peers: installs what it needs (also JAX, PyTorch, TensorBoard and XProf: about 1 GB of downloads the first time),"
	@echo "  builds into build-check/, runs the tests beside real servers."
	@tools/bootstrap peers
	@$(MAKE) -s web
	@$(PYTHON) tools/run-checks --peers

check-long:
	@echo "make check-long: the many-trial versions of the tests (crashes, fuzzing, arm64 under qemu-user)."
	@tools/bootstrap long
	@$(MAKE) -s web
	@$(PYTHON) tools/run-checks --long

bench:
	@echo "make bench: costs of our own parts beside peers, in the same run."
	@tools/bootstrap check
	@$(MAKE) -s all
	@$(PYTHON) bench/journal_bench.py
	@$(PYTHON) bench/load_bench.py
	@$(PYTHON) bench/import_bench.py

fuzz:
	@echo "make fuzz: libFuzzer on every parser, FUZZ_S=$${FUZZ_S:-300} seconds each (clang)."
	@tools/bootstrap fuzz
	@tools/run-fuzz

lint:
	@echo "make lint: clang-format, shellcheck, ruff, svelte-check; then clang-tidy on each C file that changed since it last passed"
	@echo "  (the whole tree: about 6 minutes of a processor, so make check leaves it out; make check-long has it)."
	@tools/bootstrap check
	@$(MAKE) -s web
	@tools/run-lint
	@tools/run-tidy

cover:
	@echo "make cover: line coverage of the unit tests."
	@tools/bootstrap cover
	@[ -d build-cover ] || meson setup build-cover -Db_coverage=true >/dev/null
	@ninja -C build-cover && meson test -C build-cover -q; gcovr -r . --object-directory build-cover src

# A library that is new in place is found by programs after this.
tell_loader = [ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

install: all
	@meson configure $(BUILD) $(PLACES)
	@ninja -C $(BUILD) >$(BUILD)/install.log || { cat $(BUILD)/install.log; exit 1; }
	@DESTDIR="$(abspath $(DESTDIR))" meson install -C $(BUILD) --no-rebuild
	@$(tell_loader)

# What the last make install put there; the list that meson keeps is of the last one only.
uninstall:
	@grep -qs "^$(abspath $(DESTDIR))$(abspath $(PREFIX))/" $(BUILD)/meson-logs/install-log.txt || { \
	  echo "the last make install did not put anything into $(DESTDIR)$(PREFIX)" >&2; exit 2; }
	@ninja -C $(BUILD) uninstall
	@if cd "$(DESTDIR)$(PREFIX)" 2>/dev/null; then rm -rf share/tachograph libexec/tachograph include/tachograph; fi
	@$(tell_loader)

clean:
	@rm -rf $(BUILD) build-check build-asan build-tsan build-fuzz build-clang build-release build-cover web/dist
