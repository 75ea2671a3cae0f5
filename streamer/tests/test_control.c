// SPDX-License-Identifier: GPL-2.0
/* Rate controllers: handover, hostile reports; with control_*.c for each kind, and for fates. */
#include <string.h>

#include "core/paqm_ecf.h"
#include "streamer/tests/control_path.h"

/* A queue of 60 ms stands for 0.2 s, then there is advice of 1 Mbit/s, and 0.4 s go by. */
static void path_of_queue_and_advice(struct path *p)
{
	path_init(p, &ctl_auto);
	path_run(p, 0.2, true);
	p->delay = 0.06;
	path_run(p, 0.2, true);
	advise_at(p, p->now + 0.1, 1e6);
	path_run(p, 0.4, true);
}

/* A packet in ten is lost for so long, then none. */
static void path_loses(struct path *p, double seconds, double then)
{
	p->keeps = tenth;
	path_run(p, seconds, true);
	p->keeps = all;
	path_run(p, then, true);
}

TEST(test_auto)
{
	static struct path p;
	int i;

	path_init(&p, &ctl_auto);
	SAME("start", p.rate, 750e3);
	TRUE("nobody to follow", !ctl_follows(p.c));
	advise(&p, 2.5e6);
	SAME("advice at once", ctl_rate(p.c, 0), 2.5e6);
	TRUE("follows", ctl_follows(p.c));
	advise(&p, 0.4e6);
	SAME("down at once", ctl_rate(p.c, 0), 0.4e6);
	advise(&p, 1e3);
	SAME("floor", ctl_rate(p.c, 0), 300e3);
	advise(&p, 9e9);
	SAME("ceiling", ctl_rate(p.c, 0), 3e6);
	advise(&p, 1e6);
	path_run(&p, 2, true);
	SAME("holds", p.rate, 1e6);
	/* What a router's own change makes of queue and loss passes. */
	p.delay = 0.06;
	path_run(&p, 0.6, true);
	SAME("a short queue", p.rate, 1e6);
	p.delay = 0;
	path_loses(&p, 0.4, 1);
	SAME("some loss", p.rate, 1e6);
	/* Loss that lasts: a bottleneck that has no say here. */
	p.keeps = tenth;
	path_run(&p, 3, true);
	SAME("doubt", state(p.c, "auto.doubt"), 1);
	TRUE("below", p.rate < 0.85e6);
	TRUE("does not follow in doubt", !ctl_follows(p.c));
	advise(&p, 3e6);
	TRUE("advice does not lift it", ctl_rate(p.c, p.now + 0.04) < 0.85e6);
	advise(&p, 1e6);
	p.keeps = all;
	path_run(&p, 15, true);
	SAME("trust again", state(p.c, "auto.doubt"), 0);
	SAME("all of it", p.rate, 1e6);
	/* Lost because the advice has fallen, and few were told at once. */
	advise(&p, 2e6);
	path_run(&p, 1, true);
	advise(&p, 1e6);
	path_loses(&p, 1, 2);
	SAME("loss of before a fall", p.rate, 1e6);
	/* Advice that falls every second hides no loss that lasts. */
	p.keeps = tenth;
	for (i = 0; i < 4; i++) {
		advise(&p, i % 2 ? 1e6 : 0.8e6);
		path_run(&p, 1, true);
	}
	SAME("doubt whatever is told", state(p.c, "auto.doubt"), 1);
	p.keeps = all;
	path_run(&p, 15, true);
	SAME("trust after that", p.rate, 1e6);
	/* A queue that lasts. */
	p.delay = 0.15;
	path_run(&p, 1.2, true);
	SAME("doubt by delay", state(p.c, "auto.doubt"), 1);
	TRUE("lower", p.rate < 0.85e6);
	p.delay = 0;
	path_run(&p, 15, true);
	SAME("and back", p.rate, 1e6);
	/* Alone again: from here. */
	advise(&p, 0);
	SAME("handover", ctl_rate(p.c, p.now), 1e6);
	TRUE("alone again", !ctl_follows(p.c));
	path_run(&p, 0.5, true);
	TRUE("no leap", p.rate < 1.05e6);
	path_run(&p, 6, true);
	TRUE("then its own way", p.rate > 1.2e6);
	advise(&p, 0.5e6);
	SAME("advice again", ctl_rate(p.c, p.now), 0.5e6);
	/* What is lost in the search without advice does not hold back advice that returns. */
	advise(&p, 0);
	p.keeps = tenth;
	path_run(&p, 3, true);
	TRUE("loss counts", p.rate < 0.5e6);
	advise(&p, 0.6e6);
	SAME("advice is back", ctl_rate(p.c, p.now), 0.6e6);
	p.keeps = all;
	path_run(&p, 0.5, true);
	advise(&p, 0.5e6);
	/* Reports do not come back, advice does. */
	path_run(&p, 5, false);
	SAME("advice holds", p.rate, 0.5e6);

	/* What was sent before the advice came is drained; the advice alone would leave it. */
	path_of_queue_and_advice(&p);
	SAME("below the advice", p.rate, 0.85e6);
	TRUE("yet follows", ctl_follows(p.c));
	path_run(&p, 1, false);
	SAME("no report says that it is gone", p.rate, 1e6);
	path_run(&p, 0.2, true);
	SAME("it is there", p.rate, 0.85e6);
	/* One that stays is that of others. */
	path_run(&p, 0.6, true);
	SAME("not for ever", p.rate, 1e6);

	path_of_queue_and_advice(&p);
	p.delay = 0;
	path_run(&p, 0.2, true);
	SAME("then all of it", p.rate, 1e6);
	/* A queue that begins later is the router's own affair. */
	path_run(&p, 2, true);
	p.delay = 0.06;
	path_run(&p, 0.6, true);
	SAME("later", p.rate, 1e6);

	/* Advice with receiver reports: one with loss is the routers' business, two are not. */
	path_init(&p, &ctl_auto);
	advise(&p, 1e6);
	ctl_receiver_report(p.c, 0.5, 0.05, 0.04);
	SAME("one report", ctl_rate(p.c, 0.5), 1e6);
	ctl_receiver_report(p.c, 1, 0.05, 0.04);
	SAME("two reports", ctl_rate(p.c, 1), 850e3);
	/* nor is what a fall of the advice costs */
	path_init(&p, &ctl_auto);
	advise(&p, 1e6);
	p.now = 2;
	advise(&p, 0.5e6);
	ctl_receiver_report(p.c, 2.1, 0.05, 0.04);
	ctl_receiver_report(p.c, 2.5, 0.05, 0.04);
	SAME("lost before it acted", ctl_rate(p.c, 2.5), 500e3);
}

/* The queue goes: it raised no doubt of the advice of 2.5 Mbit/s. */
static void path_believes(struct path *p)
{
	p->delay = 0;
	path_run(p, 0.6, true);
	SAME("no doubt", state(p->c, "auto.doubt"), 0);
	SAME("followed", p->rate, 2.5e6);
}

/* Advice that was doubted once is tried again. */
TEST(test_trials)
{
	static struct path p;
	int waits = 0;

	/* the queue of a second in which all begin; then that of others, which never ends */
	path_init(&p, &ctl_auto);
	advise(&p, 2.5e6);
	path_run(&p, 1, true);
	p.delay = 0.3;
	path_run(&p, 1, true);
	SAME("doubt", state(p.c, "auto.doubt"), 1);
	p.delay = 0.012;
	path_run(&p, 4, true);
	TRUE("its own way", p.rate < 1.5e6);
	path_run(&p, 12, true);
	SAME("followed again", p.rate, 2.5e6);
	SAME("no doubt", state(p.c, "auto.doubt"), 0);

	/* the same queue, which is gone half a second and a round trip after the advice came */
	path_init(&p, &ctl_auto);
	path_run(&p, 0.2, true);
	p.delay = 0.3;
	path_run(&p, 0.6, true);
	advise_at(&p, p.now + 0.34, 2.5e6); /* when the last report came */
	path_run(&p, 0.7, true);
	path_believes(&p);

	/* a queue that shows after a while without reports, and is gone soon */
	path_init(&p, &ctl_auto);
	advise(&p, 2.5e6);
	path_run(&p, 0.2, true);
	p.delay = 0.3;
	path_run(&p, 0.4, false);
	path_run(&p, 0.3, true);
	path_believes(&p);

	/* a bottleneck that does not speak, of a third of what is advised */
	path_init(&p, &ctl_auto);
	advise(&p, 3e6);
	p.capacity = 1e6;
	path_run(&p, 5, true);
	for (int i = 0; i < 200; i++) {
		p.queue = 0;
		path_run(&p, 1, true);
		waits += p.queue > 0.1;
		TRUE("a trial ends soon", p.queue < 1);
	}
	TRUE("and is rare", waits <= 12);
}

/* Spec of the sender, section 9.4. */
TEST(test_advised)
{
	static const struct {
		uint64_t router;
		double value, kbps;
	} step[] = {
		{1, 0.8, 800}, {2, 0.6, 600}, {1, 50000, 600},	{2, 30000, 630},
		{1, 0.5, 425}, {2, 1.0, 425}, {1, 700000, 630}, {2, 0.02, 63},
	};
	const struct ctl_params p = {.rate_min = 10e3, .rate_max = 1e6, .packet = 1000};
	const double highest[CTL_OPTIONS] = {1};
	struct ctl_params from_highest = p;
	struct ctl *c = ctl_new(&ctl_ecf, &p, 0);
	uint32_t seq = 0;

	ctl_advise(c, 0, &(struct ctl_advice){1e6, 1, 1, ++seq, 0, 0, 0});
	SAME("ecf: the first message holds", ctl_rate(c, 0), 250e3);
	ctl_free(c);

	from_highest.option = highest;
	c = ctl_new(&ctl_ecf, &from_highest, 0);
	for (size_t i = 0; i < ROWS(step); i++) {
		struct ctl_advice a = {1e6, step[i].value, step[i].router, ++seq, 0, 0, 0};

		ctl_advise(c, 0, &a);
		ctl_advise(c, 0, &a);
		SAME("ecf", ctl_rate(c, 0), 1e3 * step[i].kbps);
	}
	ctl_advise(c, 0, &(struct ctl_advice){0});
	SAME("ecf: nobody left", ctl_rate(c, 0), 63e3);
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 1, 3, ++seq, 0, 0, 0});
	SAME("ecf: somebody again", ctl_rate(c, 0), 63e3);
	/* Of three routers the tightest falls silent, or is on the way no more. */
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 1, 4, ++seq, 0, 0, 2});
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 1, 5, ++seq, 0, 0, 3});
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 100e3, 5, ++seq, 0, 0, 3});
	SAME("ecf: it rules", ctl_rate(c, 0), 63e3);
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 1, 4, ++seq, 0, 0, 3});
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 1, 4, seq, 0, 0, 2});
	SAME("ecf: the others go on from there", ctl_rate(c, 0), 63e3);
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 50e3, 4, ++seq, 0, 0, 1});
	SAME("ecf: and upwards", ctl_rate(c, 0), 113e3);
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 50e3, 6, ++seq, 0, 0, 1});
	SAME("ecf: another way", ctl_rate(c, 0), 163e3);
	for (uint64_t router = 7; router < 107; router++)
		ctl_advise(c, 0, &(struct ctl_advice){1e6, 0.5, router, ++seq, 0, 0, 0});
	ctl_advise(c, 0, &(struct ctl_advice){1e6, 0.1, 106, ++seq, 0, 0, 0});
	TRUE("ecf: the newest of a hundred rules", ctl_rate(c, 0) < 100e3);
	ctl_free(c);

	c = ctl_new(&ctl_erf, &p, 0);
	SAME("erf: start", ctl_rate(c, 0), 250e3);
	ctl_advise(c, 0, &(struct ctl_advice){450e3, 1, 1, 1, 0, 0, 0});
	SAME("erf", ctl_rate(c, 0), 450e3);
	ctl_advise(c, 0, &(struct ctl_advice){0});
	SAME("erf: nobody left", ctl_rate(c, 0), 450e3);
	ctl_free(c);

	c = ctl_new(&ctl_fixed, &p, 0);
	SAME("fixed", ctl_rate(c, 0), 1e6);
	ctl_free(c);
	c = ctl_new(&ctl_gcc, &p, 0);
	ctl_estimate(c, 0, 600e3);
	ctl_estimate(c, 0, NAN);
	SAME("gcc", ctl_rate(c, 0), 600e3);
	ctl_free(c);
}

static double noise(void)
{
	static uint64_t r = 0x9E3779B97F4A7C15ULL;
	double sum = -6;

	for (int i = 0; i < 12; i++) {
		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		sum += (double)(r >> 11) / 9007199254740992.0;
	}
	return sum;
}

/*
 * Parking lot of the sender's specification, section 3.1: three links of 10 Mbit/s, two flows
 * over all of them, two over each alone. The routers' own law, unsynchronized periods of 0.5 s,
 * flows that send now more, now less than they may. With a state per router the long flows
 * get what the short ones get; with the smallest step applied to one rate they would starve.
 */
static void parking(double spread)
{
	enum { LINKS = 3, FLOWS = 8, STEP_MS = 100, PERIOD_MS = 500, SECONDS = 1500 };
	static const struct ctl_params p = {.rate_min = 10e3, .rate_max = 10e6, .packet = 1000};
	const struct paqm_outer_params gains = {.alpha_q24 = PAQM_Q24(75, 100),
						.beta_q24 = PAQM_Q24(35, 100),
						.md_min_q24 = PAQM_Q24(1, 10),
						.ai_q24 = PAQM_Q24_ONE,
						.forced_md = 1};
	struct paqm_ecf_vars vars[LINKS] = {{0}};
	double queue[LINKS] = {0}, arrived[LINKS] = {0}, got[FLOWS] = {0}, mean_long, mean_short;
	struct ctl *c[FLOWS];
	uint32_t seq = 0;

	for (int f = 0; f < FLOWS; f++)
		c[f] = ctl_new(&ctl_ecf, &p, 0);
	for (int ms = 0; ms < 1000 * SECONDS; ms += STEP_MS) {
		double now = ms / 1000.0;

		for (int f = 0; f < FLOWS; f++) {
			double rate = ctl_rate(c[f], now) * fmax(0, 1 + spread * noise());

			for (int l = 0; l < LINKS; l++)
				if (f < 2 || (f - 2) / 2 == l)
					arrived[l] += rate * STEP_MS / 1000;
			if (ms > 300 * SECONDS)
				got[f] += rate;
		}
		for (int l = 0; l < LINKS; l++) {
			struct paqm_outer_in in = {.cap = 9500000,
						   .target = 6000,
						   .period_us = 1000 * PERIOD_MS,
						   .flows = 4};
			struct paqm_ecf_out out;
			float value;

			if ((ms + l * 200) % PERIOD_MS)
				continue;
			queue[l] = fmax(0, queue[l] + arrived[l] - 10e6 * PERIOD_MS / 1000);
			in.rate = (uint64_t)(arrived[l] * 1000 / PERIOD_MS);
			in.backlog = (uint32_t)(queue[l] / 8);
			arrived[l] = 0;
			out = paqm_ecf_step(&vars[l], &gains, &in);
			memcpy(&value, &out.value, sizeof(value));
			seq++;
			for (int f = 0; f < FLOWS; f++)
				if (f < 2 || (f - 2) / 2 == l)
					ctl_advise(c[f], now,
						   &(struct ctl_advice){1e6, (double)value,
									(uint64_t)l + 1, seq, 0, 0,
									0});
		}
	}
	mean_long = (got[0] + got[1]) / 2;
	mean_short = (got[2] + got[3] + got[4] + got[5] + got[6] + got[7]) / 6;
	TRUE("the long ones get as much", mean_long > 0.9 * mean_short);
	TRUE("and not more", mean_long < 1.05 * mean_short);
	for (int f = 0; f < FLOWS; f++)
		ctl_free(c[f]);
}

TEST(test_parking)
{
	static const double spread[] = {0, 0.05, 0.15, 0.3};

	for (size_t i = 0; i < ROWS(spread); i++)
		parking(spread[i]);
}

/* Whatever reports say: the rate stays within its limits, and it is a number. */
TEST(test_hostile)
{
	static struct fb_packet p[FB_REPORT + 9];
	unsigned int dice = 1;

	for (size_t k = 0; ctl_kinds[k / 3]; k++) {
		struct ctl_params ecn = params;
		struct ctl *c;
		double now = 0;

		ecn.ecn = (enum ctl_ecn)(k % 3);
		c = ctl_new(ctl_kinds[k / 3], &ecn, 0);
		for (int round = 0; round < 400; round++) {
			size_t n = (dice = dice * 1103515245 + 12345) >> 16;

			n %= round % 50 ? 40 : FB_REPORT + 9;
			for (size_t i = 0; i < n; i++) {
				static const double odd[] = {0, -1, 1e300, -1e300, 1e9, NAN};

				dice = dice * 1103515245 + 12345;
				p[i].seq = (1ULL << 32) + (dice >> 16) % 65536;
				p[i].received = dice & 0x10000;
				p[i].ce = dice & 0x80000;
				p[i].ect = dice & 0x100000;
				p[i].size = dice >> 8;
				p[i].sent = dice & 0x20000 ? now : odd[(dice >> 20) % 6];
				p[i].recv = dice & 0x40000 ? now : odd[(dice >> 21) % 6];
			}
			now += (dice >> 16) % 100 * 0.01;
			ctl_feedback(c, now, p, n);
			ctl_receiver_report(c, now, dice & 2 ? NAN : dice / 1e9 - 2,
					    dice & 1 ? NAN : 1e9);
			ctl_sent(c, now, dice);
			TRUE("a rate", ctl_rate(c, now) >= params.rate_min &&
					       ctl_rate(c, now) <= params.rate_max);
		}
		ctl_free(c);
	}
}

/*
 * A path that never carried a packet, whether its receiver says so or is not heard at all: nobody
 * sends more than in the beginning.
 */
TEST(test_nothing_arrives)
{
	static struct path p;

	for (size_t k = 0; ctl_kinds[k / 2]; k++) {
		const struct ctl_kind *kind = ctl_kinds[k / 2];
		double begin, most = 0;

		path_init(&p, kind);
		p.keeps = none;
		begin = p.rate;
		for (int n = 0; n < 3000; n++) {
			path_run(&p, 0.04, k % 2);
			most = fmax(most, isnan(p.rate) ? INFINITY : p.rate);
		}
		check(most <= begin, kind->name, most);
	}
	ctl_free(p.c);
}

/* What finds its rate by losses or delay: not what is told it, has levels, or decides in 5 s. */
static bool finds_its_rate(const struct ctl_kind *kind)
{
	static const char *const others[] = {"gcc",    "erf", "ecf",	"lda+", "layered-probing",
					     "binary", "raf", "levels", "fixed"};

	for (size_t i = 0; i < ROWS(others); i++)
		if (!strcmp(kind->name, others[i]))
			return false;
	return true;
}

/* Alone on a bottleneck with a queue of 100 ms, which then falls silent and returns. */
TEST(test_bottleneck)
{
	static struct path p;

	for (size_t k = 0; ctl_kinds[k]; k++) {
		double mean = 0, before;
		size_t sent = 0, lost = 0;

		if (!finds_its_rate(ctl_kinds[k]))
			continue;
		path_init(&p, ctl_kinds[k]);
		p.capacity = 1.5e6;
		p.room = 0.1;
		path_run(&p, 60, true);
		for (int n = 0; n < 1500; n++) {
			path_run(&p, 0.04, true);
			mean += p.rate / p.capacity / 1500;
			sent += p.n_last;
			for (size_t i = 0; i < p.n_last; i++)
				lost += !p.last[i].received;
		}
		check(mean >= 0.9 && mean <= 1.1, ctl_kinds[k]->name, mean);
		check(20 * lost < sent, ctl_kinds[k]->name, (double)lost / (double)sent);
		before = p.rate;
		path_run(&p, 10, false);
		check(p.rate <= before / 2, ctl_kinds[k]->name, p.rate / before);
		path_run(&p, 60, true);
		check(p.rate >= 0.6 * p.capacity, ctl_kinds[k]->name, p.rate / p.capacity);
	}
	ctl_free(p.c);
}

TEST(test_kinds)
{
	TRUE("the default", ctl_kinds[0] == &ctl_auto && ctl_find("tfrc") == &ctl_tfrc);
	TRUE("unknown", !ctl_find("none"));
}

CHECK_MAIN
