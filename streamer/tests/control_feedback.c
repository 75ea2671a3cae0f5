// SPDX-License-Identifier: GPL-2.0
/* Fate of packets, from reports: lost, late, unknown; clocks that are set. */
#include <math.h>
#include <string.h>

#include "streamer/tests/control_path.h"

/*
 * A packet every 2 ms, and a report every 20 ms of the last 20; each 25th comes 12 ms later than
 * its neighbours, or never. Return: how many counted as lost.
 */
static size_t reordered(struct fb *fb, uint64_t first, bool comes)
{
	struct fb_report r;
	size_t lost = 0;

	for (uint64_t from = first; from < first + 1000; from += 10) {
		struct fb_packet p[20];

		for (uint64_t i = 0; i < 20; i++) {
			double sent = 0.002 * (double)(from + i - 10);
			bool late = (from + i) % 25 == 0;
			bool here = !late || (comes && 0.002 * (double)(19 - i) >= 0.012);

			p[i] = (struct fb_packet){.seq = from + i - 10,
						  .sent = sent,
						  .recv = 7 + sent + (late ? 0.012 : 0),
						  .size = 1000,
						  .received = here};
		}
		if (fb_packets(fb, p[19].sent + 0.05, p, 20, &r))
			lost += r.lost;
	}
	return lost;
}

TEST(test_reordered)
{
	static struct fb fb;
	size_t lost;

	fb_init(&fb);
	lost = reordered(&fb, 10000, true);
	TRUE("the first counts as lost", lost >= 1 && lost <= 2);
	TRUE("how late", fb.reorder > 0.008 && fb.reorder < 0.016);
	SAME("none after that", reordered(&fb, 11000, true), 0);
	SAME("who never comes is lost still", reordered(&fb, 12000, false), 40);
	TRUE("kept for a while", fb.reorder > 0);
	lost = reordered(&fb, 31000, false);
	TRUE("and after a while without", lost >= 40 && lost <= 41); /* one of before */
	SAME("forgotten", fb.reorder, 0);
}

/* A path that reorders, and reports of another clock: what is late is not lost by that. */
TEST(test_reordered_new_clock)
{
	static struct fb fb;
	struct fb_packet p[4];
	struct fb_report r;

	for (int other = -1; other <= 1; other += 2) {
		fb_init(&fb);
		reordered(&fb, 10000, true);
		TRUE("it reorders", fb.reorder > 0.008);
		for (unsigned int i = 0; i < 4; i++)
			p[i] = (struct fb_packet){.seq = 11020 + i,
						  .sent = 22.04 + 0.001 * i,
						  .recv = 29.04 + 0.001 * i,
						  .size = 1000,
						  .received = i == 1};
		TRUE("overtaken by one", fb_packets(&fb, 22.1, p, 2, &r) && !r.lost);
		fb_new_clock(&fb);
		for (unsigned int i = 2; i < 4; i++) {
			p[i].received = true;
			p[i].recv += 5000 * other;
		}
		TRUE("by two more", fb_packets(&fb, 22.12, p + 2, 2, &r) && r.n == 2);
		SAME("it is not lost yet", r.lost, 0);
		p[0].received = true;
		p[0].recv += 5000 * other + 0.01;
		TRUE("it comes", fb_packets(&fb, 22.14, p, 1, &r) && r.n == 1);
		TRUE("as late as others", fb.reorder > 0.008 && fb.reorder < 0.016);
	}
}

TEST(test_feedback)
{
	static struct fb fb;
	struct fb_packet p[8];
	struct fb_report r;

	fb_init(&fb);
	TRUE("begins high", fb_unwrap(&fb, 65530) < 1ULL << 32);
	fb.any = true;
	fb.highest = (1ULL << 32) + 65530;
	SAME("wraps", (double)(fb_unwrap(&fb, 3) - fb.highest), 9);
	SAME("back", (double)(fb.highest - fb_unwrap(&fb, 65528)), 2);

	fb_init(&fb);
	for (int i = 0; i < 4; i++)
		p[i] = packet(100 + i, i != 1);
	TRUE("taken", fb_packets(&fb, 2, p, 3, &r));
	SAME("one later packet", r.lost, 0);
	SAME("two arrived", r.n, 2);
	TRUE("again: nothing new", !fb_packets(&fb, 2, p, 3, &r));
	TRUE("fourth", fb_packets(&fb, 2.1, p + 3, 1, &r));
	SAME("two later packets", r.lost, 0);
	p[0] = packet(104, true);
	TRUE("fifth", fb_packets(&fb, 2.2, p, 1, &r));
	SAME("three later packets", r.lost, 1);
	SAME("which", r.losses[0].seq, 101);
	SAME("of two", r.fraction, 0.5);
	p[0] = packet(101, true);
	TRUE("too late", !fb_packets(&fb, 2.3, p, 1, &r));

	/* Out of order by two: nothing is lost. */
	p[0] = packet(105, false);
	p[1] = packet(106, true);
	p[2] = packet(107, true);
	TRUE("hole", fb_packets(&fb, 2.4, p, 3, &r) && !r.lost);
	p[0].received = true;
	TRUE("filled", fb_packets(&fb, 2.5, p, 1, &r) && r.n == 1);
	for (int i = 0; i < 4; i++)
		p[i] = packet(108 + i, true);
	TRUE("no loss", fb_packets(&fb, 2.6, p, 4, &r) && !r.lost);

	/* What no report has mentioned is unknown. */
	p[0] = packet(150, true);
	TRUE("gap", fb_packets(&fb, 2.7, p, 1, &r) && !r.lost && r.expected == 1);

	/* Broken entries are not looked at. */
	p[0] = packet(200, true);
	p[0].sent = 99;
	p[1] = packet(201, true);
	p[1].recv = NAN;
	p[2] = packet(202, true);
	p[2].sent = -INFINITY;
	TRUE("broken", !fb_packets(&fb, 2.8, p, 3, &r));

	fb_init(&fb);
	for (int i = 0; i < 5; i++)
		p[i] = packet(i, true);
	TRUE("evenly", fb_packets(&fb, 1, p, 5, &r));
	SAME("rate", fb_recv_rate(&fb, 0.02), 800e3);
	SAME("round trip", r.rtt, 0.96);
}

/* The peer's clock is set back, and half as much arrives from then on. */
TEST(test_clock_back)
{
	static struct fb fb;
	struct fb_report r;

	for (int back = 1; back <= 1000; back *= 10) {
		double sent = 0;

		fb_init(&fb);
		for (unsigned int i = 0; i < 6000; i++) {
			struct fb_packet p = packet(i, true);

			sent += i < 1000 ? 0.01 : 0.02;
			p.sent = sent;
			p.recv = sent + (i < 1000 ? 2000 : 2000 - back);
			TRUE("taken", fb_packets(&fb, sent + 0.1, &p, 1, &r));
			if (i == 999)
				NEAR("before", fb_recv_rate(&fb, 0.5), 800e3);
			if (i == 1050 || i == 1100 || i == 5999)
				WITHIN("after", fb_recv_rate(&fb, 0.5), 400e3, 0.05);
		}
	}
}

/* Reports are lost until the numbers of 16 bits have gone round, by half or more. */
TEST(test_unreported)
{
	static struct fb fb;
	struct fb_report r;
	struct fb_packet p;

	for (unsigned int gap = 30000; gap < 200000; gap += 10000) {
		unsigned int news = 0;

		fb_init(&fb);
		p = (struct fb_packet){
			.seq = 1ULL << 32, .sent = 1, .recv = 1, .size = 1000, .received = true};
		TRUE("the last before", fb_packets(&fb, 1.1, &p, 1, &r));
		for (unsigned int i = 0; i < 100; i++) {
			p.seq = fb_unwrap(&fb, (uint16_t)(gap + i));
			p.sent = p.recv = 30 + 0.001 * i;
			news += fb_packets(&fb, 31, &p, 1, &r);
		}
		SAME("all are new", news, 100);
	}
}
