// SPDX-License-Identifier: GPL-2.0
/* Frame budget and wire sizes. */
#include "streamer/encoder/framebudget.h"
#include "streamer/rtp/wire.h"

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
	/* What a picture stayed short of the next ones make good, at that rate only. */
	st = (struct budget_state){0};
	b = budget_next(&st, &p, 1e6);
	budget_sent(&st, &p, &b, 4000, false);
	CHECK("owed", st.owed, 1000);
	if (budget_next(&st, &p, 1e6).target < 5400)
		CHECK("made good", 0, 1);
	b = budget_next(&st, &p, 400e3);
	budget_sent(&st, &p, &b, 2000, false);
	CHECK("not at another rate", st.owed, 0);
	st = (struct budget_state){0};
	for (int i = 0; i < 1000; i++) {
		b = budget_next(&st, &p, 1e6);
		budget_sent(&st, &p, &b, 0.9 * b.target, false);
	}
	CHECK("mean of a sender that undershoots", 0.9 * b.target, 5000);
}

static void test_wire(void)
{
	static const struct {
		const char *name;
		bool ipv6, srtp;
		unsigned int headers;
	} nets[] = {
		{"IPv4", false, false, 48},
		{"IPv4, SRTP", false, true, 58},
		{"IPv6", true, false, 68},
		{"IPv6, SRTP", true, true, 78},
	};

	CHECK("alone", wire_packet(false, 3e6), 1200);
	CHECK("follows", wire_packet(true, 500e3), 800);
	CHECK("slowly", wire_packet(true, 499e3), 1200);
	for (size_t i = 0; i < 2 * sizeof(nets) / sizeof(nets[0]); i++) {
		unsigned int h = wire_headers(nets[i / 2].ipv6, nets[i / 2].srtp);
		unsigned int most = wire_packet(i % 2, 1e6);
		size_t part = most - 2 - h;

		CHECK(nets[i / 2].name, h, nets[i / 2].headers);
		CHECK("one packet", wire_bytes(most - h, most, h), most);
		CHECK("two", wire_bytes(most + 1 - h, most, h), most - h + 2 * (h + 2));
		CHECK("packets", wire_packets(1 + part * 3, most, h), 3);
		CHECK("packets", wire_packets(2 + part * 3, most, h), 4);
		for (size_t wire = h + 1; wire < 20000; wire++) {
			size_t nal = wire_largest_nal(wire, most, h);

			if (wire_bytes(nal, most, h) > wire) {
				CHECK("largest NAL fits", wire_bytes(nal, most, h), wire);
				break;
			}
		}
	}
}

int main(void)
{
	test_budget();
	test_wire();
	printf(failed ? "%d checks failed\n" : "budget: all checks hold\n", failed);
	return failed != 0;
}
