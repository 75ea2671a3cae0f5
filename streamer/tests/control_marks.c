// SPDX-License-Identifier: GPL-2.0
/* ECN: what controllers make of marks, and of paths that do not treat it as they should. */
#include "streamer/tests/control_path.h"

/*
 * A queue of the flow's own that marks what exceeds the fair rate: by CoDel (5 ms, 100 ms), or in
 * proportion to the wait from 1 ms on. 20 ms each way, a picture each 1/24 s which costs 97 % of
 * what it may, a report when it has come.
 */
struct lane {
	struct ctl *c;
	bool codel;
	double now, fair, busy;
	double above, next_mark; /* CoDel */
	bool shared;		 /* each waits for a packet of another flow, which is long enough */
	int marks, count;
	uint64_t seq;
	struct {
		double at;
		size_t n;
		struct fb_packet pkts[64];
	} reports[64];
	size_t first, last;
	double bytes[400]; /* that arrived in each quarter second */
};

static bool lane_marks(struct lane *l, double start, double wait)
{
	bool now = false;

	if (l->shared)
		return true;
	if (!l->codel)
		return wait > 0.001 && fmod(0.618 * (double)l->seq, 1) < (wait - 0.001) / 0.010;
	if (wait < 0.005)
		l->above = l->count = 0;
	else if (l->above <= 0)
		l->above = l->next_mark = start + 0.1;
	else
		now = start >= l->next_mark;
	if (now)
		l->next_mark = start + 0.1 / sqrt(++l->count);
	return now;
}

static void lane_run(struct lane *l, double seconds)
{
	for (double end = l->now + seconds; l->now < end - 1e-9; l->now += 1 / 24.0) {
		double left, gap, t = l->now;
		size_t k, n = 0;

		while (l->first != l->last && l->reports[l->first % 64].at <= l->now) {
			k = l->first++ % 64;
			ctl_feedback(l->c, l->reports[k].at, l->reports[k].pkts, l->reports[k].n);
		}
		left = 0.97 * ctl_rate(l->c, l->now) / 24 / 8;
		ctl_sent(l->c, l->now, (size_t)left);
		gap = 1200 / left / 24;
		k = l->last++ % 64;
		for (; left > 0; left -= 1200, t += gap) {
			double size = fmin(1200, left), start = fmax(t, l->busy);
			bool ce = lane_marks(l, start, start - t);
			size_t quarter;

			l->busy = start + 8 * size / l->fair;
			l->marks += ce;
			l->reports[k].at = l->busy + 0.04;
			l->reports[k].pkts[n++] = (struct fb_packet){
				.seq = l->seq++,
				.sent = t,
				.recv = 1000 + floor((l->busy + 0.02) * 1024) / 1024,
				.size = (uint32_t)size,
				.received = true,
				.ect = !ce,
				.ce = ce,
			};
			quarter = (size_t)(4 * l->busy);
			if (quarter < sizeof(l->bytes) / sizeof(l->bytes[0]))
				l->bytes[quarter] += size;
		}
		l->reports[k].n = n;
	}
}

/* Of the fair rate, from 2 s after a change on: in all, and in the least quarter second. */
static double lane_share(const struct lane *l, double from, double to, double *least)
{
	double sum = 0;

	*least = INFINITY;
	for (size_t q = (size_t)(4 * from); q < (size_t)(4 * to); q++) {
		sum += l->bytes[q];
		*least = fmin(*least, 4 * 8 * l->bytes[q] / l->fair);
	}
	return 8 * sum / l->fair / (to - from);
}

static void marks(bool codel)
{
	static const double fair[] = {2.4e6, 1.2e6, 0.8e6, 1.2e6, 2.4e6, 0.6e6, 1.2e6};
	struct ctl_params p = params;
	static struct lane l;
	double least;

	p.packet = 1200;
	p.ecn = codel ? CTL_ECN_CLASSIC : CTL_ECN_SCALABLE;
	l = (struct lane){.c = ctl_new(&ctl_auto, &p, 0), .codel = codel, .seq = 1ULL << 32};
	for (size_t i = 0; i < ROWS(fair); i++) {
		double begin = 10.0 * (double)i, share;

		l.fair = fair[i];
		l.marks = 0;
		lane_run(&l, begin + 10 - l.now);
		share = lane_share(&l, begin + 2, begin + 9.5, &least);
		if (share < 0.9 || least < 0.7)
			printf("%s, %.1f Mbit/s: %.3f of it, least %.3f\n",
			       codel ? "classic" : "scalable", fair[i] / 1e6, share, least);
		TRUE("the fair rate by marks", share >= 0.9);
		TRUE("never far below", least >= 0.7);
		TRUE("there are marks", l.marks > 0);
		TRUE("the queue is gone", l.busy - l.now < 0.1);
	}
	SAME("good path", state(l.c, "ecn.path"), CTL_PATH_GOOD);
	ctl_free(l.c);
}

TEST(test_marks)
{
	marks(true);
	marks(false);
}

/* At 0.4 Mbit/s a packet of another flow takes 24 ms: who has his fair rate is marked for ever. */
TEST(test_marked_for_ever)
{
	struct ctl_params p = params;
	static struct lane l;
	double least;

	p.packet = 1200;
	p.ecn = CTL_ECN_SCALABLE;
	l = (struct lane){.c = ctl_new(&ctl_auto, &p, 0), .fair = 0.4e6, .seq = 1ULL << 32};
	lane_run(&l, 20);
	l.shared = true;
	lane_run(&l, 30);
	SAME("not stuck", state(l.c, "ecn.path"), CTL_PATH_GOOD);
	WITHIN("share", lane_share(&l, 20, 50, &least), 0.9, 0.15);
	TRUE("never far below", least >= 0.7);
	ctl_free(l.c);
}

static bool marked_tenth(uint64_t seq)
{
	return seq % 10 == 0;
}

/* What the controllers of RFCs make of marks. */
TEST(test_marks_published)
{
	static struct path p;
	struct fb_report r;
	struct fb_packet three[3];
	static struct fb fb;
	double before;

	fb_init(&fb);
	for (int i = 0; i < 3; i++)
		three[i] = packet(100 + i, true);
	three[0].ect = three[2].ect = three[1].ce = true;
	TRUE("counted", fb_packets(&fb, 2, three, 3, &r) && r.ect == 2 && r.ce == 1);
	TRUE("once", !fb_packets(&fb, 2, three, 3, &r));

	/* without ECN marks are nobody's business */
	path_init(&p, &ctl_nada);
	p.marks = marked_tenth;
	path_run(&p, 12, true);
	SAME("not asked for", p.rate, 3e6);
	/* DMARK (0.1 / PMRREF)^2 is 200 ms, of which 100 count */
	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_nada);
	path_run(&p, 12, true);
	SAME("no marks", p.rate, 3e6);
	p.marks = marked_tenth;
	path_run(&p, 3, true);
	WITHIN("p_mark", state(p.c, "nada.p_mark"), 0.1, 0.15);
	WITHIN("penalty", state(p.c, "nada.x"), 0.1, 0.01);
	TRUE("lower", p.rate < 0.7 * 3e6);

	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_tfrc);
	path_run(&p, 1, true);
	SAME("no event", state(p.c, "tfrc.p"), 0);
	p.marks = marked_tenth;
	path_run(&p, 20, true);
	before = state(p.c, "tfrc.p");
	TRUE("marks are events", before > 0.01);
	TRUE("equation", p.rate < 2e6);
}

/* A path that does not treat ECN as it should. */
TEST(test_ecn_path)
{
	static struct path p;
	double before;

	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_auto);
	path_run(&p, 2, true);
	SAME("good", ctl_ecn_seen(p.c)->path, CTL_PATH_GOOD);
	TRUE("counted", ctl_ecn_seen(p.c)->ect > 100 && !ctl_ecn_seen(p.c)->ce);
	p.marks = all;
	before = p.rate;
	path_run(&p, 3, true);
	SAME("an overload", ctl_ecn_seen(p.c)->path, CTL_PATH_GOOD);
	TRUE("answered", p.rate < 0.5 * before);
	path_run(&p, 4, true);
	SAME("stuck", ctl_ecn_seen(p.c)->path, CTL_PATH_STUCK);
	path_run(&p, 30, true);
	SAME("marks count no more", p.rate, params.rate_max);

	path_ecn(&p, CTL_ECN_SCALABLE, &ctl_auto);
	p.bleached = true;
	path_run(&p, 2, true);
	SAME("too soon", ctl_ecn_seen(p.c)->path, CTL_PATH_UNKNOWN);
	path_run(&p, 2, true);
	SAME("bleached", ctl_ecn_seen(p.c)->path, CTL_PATH_BLEACHED);

	/* advice in force: marks that last contradict it */
	path_ecn(&p, CTL_ECN_CLASSIC, &ctl_auto);
	advise(&p, 2e6);
	path_run(&p, 2, true);
	p.marks = marked_tenth;
	path_run(&p, 0.5, true);
	SAME("a short while", ctl_rate(p.c, p.now), 2e6);
	path_run(&p, 1.5, true);
	SAME("doubt by marks", state(p.c, "auto.doubt"), 1);
	TRUE("below the advice", p.rate < 1.8e6);
}
