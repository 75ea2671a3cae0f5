# SPDX-License-Identifier: GPL-2.0
# The front door. Each target does its whole set-up (packages, Python environment, kernel source,
# lab kernel), caches it under the user's cache directory and is quick the second time.
#
#	make demo		the demonstration: report.html, result.json and side-by-side.mp4,
#				the video of what receivers saw (out/demo)
#	make setup		what the other targets need: packages, Python environment
#	make build		user space, in build/
#	make test		all tests but the slow ones; FULL=1: those in which browsers and
#				paqm-streamer encode for minutes, too, as CI does
#	make demo-seeds		the P-AQM half of the demonstration with five seeds
#	make fuzz SECONDS=60	fuzz targets, each for so long; RUNS=100000000: until each was
#				executed so often (goes on where it was stopped: out/fuzz)
#	make coverage		branch coverage of what parses and judges in paqmd
#	make attack		attacks on paqmd, in the lab and in real time (slow, root)
#	make bench-auto		slow: links whose rate varies, P-AQM beside CAKE (out/bench-auto)
#	make trace		64 trace flows (or FLOWS=N) through one bottleneck (out/trace)
#	make mixed		followers beside senders that do not listen (slow; FULL=1: the
#				whole grid, a day on two cores: out/mixed)
#	make regimes		followers over many capacities and round trips (slow; FULL=1: the
#				whole grid, hours: out/regimes)
#	make head-to-head	P-AQM beside the queues and senders of today (slow; FULL=1: three seeds:
#				out/head-to-head)
#	make catalogue		every published result, run again, with a verdict (slow; FULL=1: at
#				the published scale: out/catalogue)
#	make laws		scenario by law, and the map of stability, theory beside (slow;
#				FULL=1: the whole map, an hour or more: out/laws)
#	make rivals		P-AQM beside the laws and queues of others (slow: out/rivals)
#	make dcbt		the published experiments of D-CBT and ChIPS (slow: out/dcbt)
#	make rmcat		the test cases of RFC 8867 and RFC 8869 (slow: out/rmcat)
#	make thousand		a sweep of a thousand short runs (slow: out/thousand)
#	make bench-daemon	paqmd: 10,000 flows, 64 routers, memory, latency (root)
#	make bench-encoder	the encoder beside x264enc while the rate falls and rises (slow)
#	make controllers	rate controllers of the literature against their bands (slow: out/controllers)
#	make streamer-checks	rate controllers on queues with and without advice (slow;
#				SEEDS="1 2 3", the first two with each of these)
#	make interlace		2D-interlaced coding: its cost, and what it saves (out/interlace)
#	make gst-checks		GStreamer pipelines as webrtcsink's: advice beside Google congestion
#				control (needs cargo: out/gst-checks)
#	make browser		Chromium with the extension beside Chromium without (slow: out/browser)
#	make browser-page	the same where the page limits itself (slow: out/browser-page)
#	make firefox		the same of Firefox (slow: out/firefox)
#	make sfu		a conference server: 50 viewers behind an uplink, TCP beside them
#				(slow: out/sfu)
#	make call-demo		a recorded call of two minutes and its report (out/call)
#	make call-live		the same in real time, with cameras, windows, sound cards (slow, root)
#	make long-call MINUTES=10	a call whose devices come and go, beside strangers (slow)
#	make clients		clients of paqmd in Go and Rust: vectors, fuzzing, the real paqmd
#				(needs cargo; that in Python is in make test)
#	make connectors		connectors and an SFU, in the cache (Go)
#	make connector-checks	connectors of conference servers: their parsers, LiveKit in a guest, Janus if
#				installed
#	make gcc-element	optional: GStreamer's Google congestion control (Rust; once)
#	make tdc-kernel		the kernel's own cases for qdiscs, without and with the module (slow)
#	make kernels		modules and suites on 6.1, 6.12 and the newest kernel (very slow)
#	make torture OPS=20000	random tc operations against traffic, kernel with all checkers (slow)
#	make races ROUNDS=10	data races of the modules, on two processors; UNDER=kasan memory, locks and
#				leaks, UNDER=rt a real-time kernel (slow; QEMU)
#	make foreign		user space for 32 bits and big endian, executed by QEMU (slow)
#	make soak HOURS=1	so many virtual hours of traffic, every packet accounted for (slow)
#	make acceptance		what the specification demands of the qdisc (slow)
#	make multirouter	several routers, GFC-2, lost feedback (slow: out/multirouter)
#	make bench-lab		processor time of a run, beside its codecs alone (out/bench-lab)
#	make bench-qdisc	what a packet costs, beside other qdiscs (slow)
#	make tdc		cases of the qdisc in the kernel's tdc format
#	make lint		formatters and static checks
#	make lint-kernel	all static checks of the modules, 32 bit and big endian too (slow)
#	make deb		Debian packages in out/deb (root the first time)
#	make test-packages	slow, root: the packages on stock Debian 12 and 13 under QEMU
#	make clean		removes build/ and out/
#
#	KERNEL_SRC=DIR		before any of them: build the lab's kernel from this clean source tree
#				(6.16 or newer)

BUILD ?= build
SECONDS ?= 60
OPS ?= 20000
HOURS ?= 1
ROUNDS ?= 10
UNDER ?= kcsan
SEED ?= 1
export RUNS
# [a-z] of a shell or of grep means what it says: in a Turkish locale it has no i.
export LC_ALL := C.UTF-8
# Where tc and ip are: Debian leaves it out of the path of who is not root.
export PATH := $(PATH):/usr/sbin:/sbin
# Services and some containers have none, and the cache is in it.
export HOME ?= $(shell getent passwd $$(id -u) | cut -d: -f6)
LAB = testbed/paqm-lab

.PHONY: help setup build demo demo-seeds test acceptance multirouter tdc tdc-kernel kernels torture races foreign soak lint fuzz bench-auto \
	bench-encoder bench-qdisc deb clean
help:
	@sed -n 's/^#\t//p' Makefile

setup:
	@setup/setup.sh

build: setup
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) >$(BUILD).log 2>&1 || \
		{ cat $(BUILD).log; echo "make: meson cannot configure $(BUILD)/" >&2; exit 2; }
	@rm -f $(BUILD).log
	@echo "build: user space"
	@ninja -C $(BUILD) --quiet

demo: setup
	@$(LAB) run demo --out out/demo
	@$(LAB) checks out/demo

demo-seeds: setup
	@for seed in 1 2 3 4 5; do \
		$(LAB) run demo --variant paqm --seed $$seed --out out/demo-seeds/$$seed || exit $$?; \
	done
	@$(LAB) checks out/demo-seeds

test: build
	@setup/test.py --build $(BUILD) $(if $(FULL),--full)

acceptance: build
	@kernel/lab-tests/spec.py run --build $(BUILD) --out out/acceptance

tdc: build
	@setup/test.py --build $(BUILD) tdc

tdc-kernel: setup
	@kernel/tc-tests/upstream.py

kernels: build
	@kernel/lab-tests/kernels.py

races: build
	@$(LAB) races --kernel $(UNDER) --rounds $(ROUNDS) --out out/races

foreign: setup
	@$(LAB) foreign --out out/foreign

torture: setup
	@kernel/lab-tests/torture.py --ops $(OPS) --seed $(SEED)

soak: setup
	@kernel/lab-tests/soak.py --hours $(HOURS) --seed $(SEED)

lint: build
	@setup/lint.sh

.PHONY: long-call
long-call: build
	@$(LAB) exec --memory 1G --timeout 7200 streamer/tests/long_call.py \
		$(BUILD)/streamer/paqm-streamer $(MINUTES)

.PHONY: lint-kernel
lint-kernel: build
	@setup/lint-kernel.sh

fuzz: build
	@setup/fuzz.sh $(SECONDS)
	@test -n "$(RUNS)" || $(LAB) exec --debug-kernel --memory 512M kernel/fuzz/lab_frames.py \
		--count $$(($(SECONDS) * 100))

bench-auto: build
	@for link in lte wifi leo; do \
		$(LAB) run link-$$link --out out/bench-auto/$$link || exit $$?; \
	done
	@docs/make_links.py merge out/bench-auto
	@$(LAB) checks out/bench-auto

.PHONY: trace
trace: setup
	@$(LAB) trace --flows $(or $(FLOWS),64) --out out/trace

.PHONY: mixed regimes catalogue head-to-head laws rivals rmcat dcbt
head-to-head: setup
	@$(LAB) head-to-head $(if $(FULL),--full) --out out/head-to-head

mixed: setup
	@$(LAB) mixed $(if $(FULL),--full) --out out/mixed

catalogue: build
	@$(LAB) catalogue $(if $(FULL),--full) --out out/catalogue

laws: setup
	@$(LAB) laws $(if $(FULL),--full) --out out/laws

rivals: setup
	@$(LAB) rivals --out out/rivals

dcbt: setup
	@$(LAB) dcbt --out out/dcbt

regimes: setup
	@$(LAB) regimes $(if $(FULL),--full) --out out/regimes

rmcat: setup
	@$(LAB) rmcat --out out/rmcat
.PHONY: thousand
thousand: setup
	@$(LAB) sweep testbed/sweeps/thousand.toml --out out/thousand

.PHONY: bench-daemon
bench-daemon: build
	@feedback-daemon/tests/bench.py --out out/bench-daemon $(BUILD)

.PHONY: interlace
interlace: build
	@$(LAB) interlace --build $(BUILD) --out out/interlace

.PHONY: gst-checks
gst-checks: setup gcc-element
	@$(LAB) run gst --out out/gst-checks
	@$(LAB) checks out/gst-checks

.PHONY: browser
browser: setup
	@$(LAB) browser chromium --out out/browser

.PHONY: browser-page
browser-page: setup
	@$(LAB) browser chromium-page --out out/browser-page

.PHONY: firefox
firefox: setup
	@$(LAB) browser firefox --out out/firefox

.PHONY: call-demo
call-demo: setup
	@$(LAB) call --out out/call

.PHONY: call-live
call-live: build
	@testbed/call-live.sh out/call-live

bench-encoder: build
	@$(LAB) bench-encoder --tool $(BUILD)/streamer/tests/bench_element \
		--out out/bench-encoder

.PHONY: gcc-element streamer-checks
streamer-checks: build gcc-element
	@streamer/lab/streamer_checks.py --out out/streamer --seeds $(or $(SEEDS),1 2 3)

.PHONY: controllers
controllers: setup
	@$(LAB) controllers --out out/controllers

gcc-element:
	@setup/gcc-element/build.sh

multirouter: setup
	@$(LAB) multirouter --out out/multirouter

.PHONY: bench-lab
bench-lab: setup
	@$(LAB) bench-lab --out out/bench-lab

bench-qdisc: build
	@$(LAB) bench-qdisc --out out/bench-qdisc

deb:
	@packaging/build-deb.sh out/deb

.PHONY: connectors sfu
connectors: setup
	@connectors/build.sh

.PHONY: connector-checks
connector-checks: build connectors
	@connectors/check.sh $(BUILD)

sfu: connectors
	@$(LAB) sfu --out out/sfu

.PHONY: clients
clients: build
	@clients/check.sh $(BUILD)

.PHONY: attack
attack: build
	@feedback-daemon/attack/run.py --build $(BUILD) --out out/attack

.PHONY: coverage
coverage: build
	@feedback-daemon/tests/coverage.py --out out/coverage

.PHONY: test-packages
test-packages:
	@testbed/qemu/test-packages.sh

clean:
	rm -rf $(BUILD) out
