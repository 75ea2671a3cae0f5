// SPDX-License-Identifier: GPL-2.0
/* The allowance: advice, safety net and how they meet; frame budget; wire sizes. */
#include "streamer/allowance.h"
#include "streamer/framebudget.h"
#include "streamer/wire.h"

#include <math.h>
#include <stdio.h>

static int failed;

#define CHECK(what, got, want)                                                                     \
	do {                                                                                       \
		double g_ = (got), w_ = (want);                                                    \
		if (fabs(g_ - w_) > 1e-6 * fabs(w_) + 1e-9) {                                      \
			failed++;                                                                  \
			printf("FAIL line %d, %s: %.6f instead of %.6f\n", __LINE__, what, g_,     \
			       w_);                                                                \
		}                                                                                  \
	} while (0)

static const struct allow_params params = {.rate_min = 300e3, .rate_max = 3e6};

static double run_to(struct allow_state *st, double *now, double end)
{
	double rate = 0;

	for (; *now < end - 1e-9; *now += 0.05)
		rate = allow_rate(st, &params, *now);
	return rate;
}

static void test_advice(void)
{
	struct allow_state st;
	double now = 0;

	allow_init(&st, &params, now);
	CHECK("start", run_to(&st, &now, 0.6), 750e3);
	allow_advice(&st, &params, now, 2.5e6);
	CHECK("advice at once", allow_rate(&st, &params, now), 2.5e6);
	allow_advice(&st, &params, now, 0.4e6);
	CHECK("advice down at once", allow_rate(&st, &params, now), 0.4e6);
	allow_advice(&st, &params, now, 1e3);
	CHECK("floor", allow_rate(&st, &params, now), 300e3);
	allow_advice(&st, &params, now, 9e9);
	CHECK("ceiling", allow_rate(&st, &params, now), 3e6);

	/* One lossy report is the routers' business, two are the net's. */
	allow_advice(&st, &params, now, 1e6);
	allow_report(&st, &params, now, 0.05);
	CHECK("one report", allow_rate(&st, &params, now), 1e6);
	allow_report(&st, &params, now, 0.05);
	CHECK("two reports", allow_rate(&st, &params, now), 850e3);
	allow_advice(&st, &params, now, 3e6);
	CHECK("advice does not lift the net", allow_rate(&st, &params, now), 850e3);
	allow_report(&st, &params, now + 0.5, 0);
	CHECK("the net rests", run_to(&st, &now, now + 1.9), 850e3);
	allow_report(&st, &params, now, 0);
	run_to(&st, &now, now + 0.3);
	CHECK("and rises", allow_rate(&st, &params, now), 935e3);
	allow_report(&st, &params, now, 0.004);
	CHECK("little loss is none", allow_rate(&st, &params, now), 935e3);

	/* Alone again: from where it is. */
	allow_init(&st, &params, now);
	allow_advice(&st, &params, now, 1e6);
	allow_advice(&st, &params, now, 0);
	CHECK("expired", allow_rate(&st, &params, now), 1e6);
	run_to(&st, &now, now + 3);
	CHECK("no reports, no growth", allow_rate(&st, &params, now), 1e6);
	allow_report(&st, &params, now, 0);
	CHECK("reports, growth", allow_rate(&st, &params, now), 1.1e6);
	/* What is lost in the search without advice does not hold back the advice. */
	allow_report(&st, &params, now, 0.2);
	allow_report(&st, &params, now, 0.2);
	CHECK("alone, loss counts", allow_rate(&st, &params, now), 0.85 * 0.85 * 1.1e6);
	allow_advice(&st, &params, now, 2e6);
	CHECK("advice is back", allow_rate(&st, &params, now), 2e6);
	/* What was lost beside the advice does, as it did before. */
	allow_report(&st, &params, now, 0.2);
	allow_report(&st, &params, now, 0.2);
	CHECK("loss beside advice", allow_rate(&st, &params, now), 0.85 * 2e6);
	allow_advice(&st, &params, now, 0);
	allow_advice(&st, &params, now, 2e6);
	CHECK("and is remembered", allow_rate(&st, &params, now), 0.85 * 2e6);
}

static void test_net(void)
{
	struct allow_state st;
	double now = 0, before;

	allow_init(&st, &params, now);
	CHECK("no report, no growth", run_to(&st, &now, 20), 750e3);
	allow_init(&st, &params, now);
	allow_report(&st, &params, now, 0);
	CHECK("hold for a second", run_to(&st, &now, now + 0.95), 750e3);
	run_to(&st, &now, now + 0.2);
	CHECK("then grow", allow_rate(&st, &params, now), 825e3);
	for (int i = 0; i < 60; i++) {
		allow_report(&st, &params, now, 0);
		run_to(&st, &now, now + 0.5);
	}
	CHECK("to the top", allow_rate(&st, &params, now), 3e6);
	allow_report(&st, &params, now, 0.02);
	CHECK("loss", allow_rate(&st, &params, now), 2.55e6);
	before = now;
	CHECK("five seconds of silence change little", run_to(&st, &now, before + 2), 2.55e6);
	run_to(&st, &now, before + 40);
	CHECK("long silence", allow_rate(&st, &params, now), 300e3);
}

static void test_budget(void)
{
	const struct budget_params p = {.interval = 0.04, .delay = 0.012, .use = 1};
	struct budget_state st = {0};
	struct budget b = budget_next(&st, &p, 1e6);

	CHECK("share", b.share, 5000);
	CHECK("bound", b.bound, 6500);
	CHECK("target", b.target, 5000);
	budget_sent(&st, &p, &b, 6500, false);
	CHECK("backlog", st.backlog, 1500);
	b = budget_next(&st, &p, 1e6);
	CHECK("bound after a full one", b.bound, 5000);
	if (b.target >= 5000 || b.skip)
		CHECK("repays", 0, 1);
	/* A steep fall: what was borrowed at the old rate is more than the budget. */
	b = budget_next(&st, &p, 100e3);
	CHECK("left out", b.skip, 1);
	budget_sent(&st, &p, &b, 0, true);
	CHECK("drains", st.backlog, 1000);
	/* What does not fit the content is no reason to ask for more. */
	st = (struct budget_state){0};
	b = budget_next(&st, &p, 1e6);
	budget_sent(&st, &p, &b, 100, true);
	CHECK("limited", st.trim, 0);
	for (int i = 0; i < 1000; i++) {
		b = budget_next(&st, &p, 1e6);
		budget_sent(&st, &p, &b, 0.9 * b.target, false);
	}
	CHECK("mean of a sender that undershoots", 0.9 * b.target, 5000);
}

static void test_wire(void)
{
	CHECK("one packet", wire_bytes(1160), 1200);
	CHECK("two", wire_bytes(1161), 1160 + 2 * 42);
	CHECK("packets", wire_packets(1 + 1158 * 3), 3);
	CHECK("packets", wire_packets(2 + 1158 * 3), 4);
	for (size_t wire = 41; wire < 20000; wire++) {
		size_t nal = wire_largest_nal(wire);

		if (wire_bytes(nal) > wire) {
			CHECK("largest NAL fits", wire_bytes(nal), wire);
			break;
		}
	}
}

int main(void)
{
	test_advice();
	test_net();
	test_budget();
	test_wire();
	printf(failed ? "%d checks failed\n" : "allowance: all checks hold\n", failed);
	return failed != 0;
}
