// SPDX-License-Identifier: GPL-2.0
/* Frame budget and wire sizes, and what is given up where that is not enough. */
#include "core/tests/check.h"
#include "streamer/encoder/framebudget.h"
#include "streamer/encoder/steps.h"
#include "streamer/rtp/wire.h"

#define NEAR(what, got, want) near(what, got, want, 1e-6 * fabs((double)(want)) + 1e-9)

TEST(test_budget)
{
	const struct budget_params p = {.interval = 0.04, .delay = 0.012, .use = 1};
	struct budget_state st = {0};
	struct budget b = budget_next(&st, &p, 1e6);

	NEAR("share", b.share, 5000);
	NEAR("bound", b.bound, 6500);
	NEAR("target", b.target, 5000);
	budget_sent(&st, &p, &b, 6500, false);
	NEAR("backlog", st.backlog, 1500);
	b = budget_next(&st, &p, 1e6);
	NEAR("bound after a full one", b.bound, 5000);
	check(b.target < 5000 && !b.skip, "repays", b.target);
	/* A steep fall: what was borrowed at the old rate is more than the budget. */
	b = budget_next(&st, &p, 100e3);
	NEAR("left out", b.skip, 1);
	budget_sent(&st, &p, &b, 0, true);
	NEAR("drains", st.backlog, 1000);
	/* What does not fit the content is no reason to ask for more. */
	st = (struct budget_state){0};
	b = budget_next(&st, &p, 1e6);
	budget_sent(&st, &p, &b, 100, true);
	NEAR("limited", st.trim, 0);
	/* What a picture stayed short of the next ones make good, at that rate only. */
	st = (struct budget_state){0};
	b = budget_next(&st, &p, 1e6);
	budget_sent(&st, &p, &b, 4000, false);
	NEAR("owed", st.owed, 1000);
	check(budget_next(&st, &p, 1e6).target >= 5400, "made good", 0);
	b = budget_next(&st, &p, 400e3);
	budget_sent(&st, &p, &b, 2000, false);
	NEAR("not at another rate", st.owed, 0);
	st = (struct budget_state){0};
	for (int i = 0; i < 1000; i++) {
		b = budget_next(&st, &p, 1e6);
		budget_sent(&st, &p, &b, 0.9 * b.target, false);
	}
	NEAR("mean of a sender that undershoots", 0.9 * b.target, 5000);
}

TEST(test_wire)
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

	NEAR("alone", wire_packet(false, 3e6), 1200);
	NEAR("follows", wire_packet(true, 500e3), 800);
	NEAR("slowly", wire_packet(true, 499e3), 1200);
	NEAR("fine", wire_packet_of(800, 1200, 28), 800);
	NEAR("coarse", wire_packet_of(800, 1200, 28.1), 1200);
	NEAR("not shorter", wire_packet_of(800, 0, 51), 800);
	for (size_t i = 0; i < 2 * ROWS(nets); i++) {
		unsigned int h = wire_headers(nets[i / 2].ipv6, nets[i / 2].srtp);
		unsigned int most = wire_packet(i % 2, 1e6);
		size_t part = most - 2 - h;

		NEAR(nets[i / 2].name, h, nets[i / 2].headers);
		NEAR("one packet", wire_bytes(most - h, most, h), most);
		NEAR("two", wire_bytes(most + 1 - h, most, h), most - h + 2 * (h + 2));
		NEAR("packets", wire_packets(1 + part * 3, most, h), 3);
		NEAR("packets", wire_packets(2 + part * 3, most, h), 4);
		for (size_t wire = h + 1; wire < 20000; wire++) {
			size_t nal = wire_largest_nal(wire, most, h);

			check(wire_bytes(nal, most, h) <= wire, "largest NAL fits", wire);
		}
	}
}

/* Each step down gives something up, and the way back has the same ones. */
TEST(test_steps)
{
	static const struct {
		int width, height;
		size_t n, step[STEPS];
	} rows[] = {
		{640, 480, 5, {0, 1, 2, 3, 4}},
		{320, 240, 4, {0, 1, 2, 4}},
		{176, 144, 3, {0, 1, 4}},
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		const struct h264_config cfg = {.width = rows[i].width, .height = rows[i].height};
		size_t last = rows[i].step[rows[i].n - 1];

		for (size_t k = 1; k < rows[i].n; k++) {
			NEAR("down", step_below(&cfg, rows[i].step[k - 1], QP_NO_FIT),
			     rows[i].step[k]);
			NEAR("up", step_above(&cfg, rows[i].step[k]), rows[i].step[k - 1]);
		}
		NEAR("no further", step_below(&cfg, last, QP_NO_FIT), last);
		NEAR("one in four only where nothing fits",
		     step_below(&cfg, rows[i].step[rows[i].n - 2], QP_COARSEST),
		     rows[i].step[rows[i].n - 2]);
	}
}

CHECK_MAIN
