// SPDX-License-Identifier: GPL-2.0
/* NADA: published vectors, and a queue of its own. */
#include "streamer/control/nada.h"
#include "streamer/tests/control_path.h"

TEST(test_nada)
{
	static struct path p;
	double before;

	path_init(&p, &ctl_nada);
	SAME("start", p.rate, 750e3);
	path_run(&p, 0.4, true);
	TRUE("grows without a queue", p.rate > 750e3);
	path_run(&p, 12, true);
	SAME("to the top", p.rate, 3e6);
	p.delay = 0.1;
	path_run(&p, 0.5, true);
	TRUE("a queue lowers it", p.rate < 2.2e6);
	path_run(&p, 5, true);
	TRUE("and again", p.rate < 1.2e6);
	p.delay = 0;
	path_run(&p, 20, true);
	SAME("and up", p.rate, 3e6);
	/* A queue that begins is drained at once, one that stays is not ours. */
	p.delay = 0.01;
	path_run(&p, 0.24, true);
	TRUE("drained", p.rate < 2.75e6);
	before = p.rate;
	path_run(&p, 1, true);
	TRUE("not twice", p.rate > 0.95 * before);
	/* What a packet takes is no queue. */
	p.delay = 0;
	path_run(&p, 20, true);
	p.delay = 0.003;
	path_run(&p, 2, true);
	SAME("no queue", p.rate, 3e6);
	p.delay = 0;
	path_run(&p, 1, true);
	SAME("and up", p.rate, 3e6);
	before = p.rate;
	path_run(&p, 5.5, false);
	TRUE("black-out", p.rate <= before / 4);
	path_run(&p, 12, true);
	SAME("back", p.rate, 3e6);
	/* A clock that is set does not look like a queue. */
	p.delay = 3600;
	p.last[0] = (struct fb_packet){
		.seq = p.seq,
		.sent = p.now,
		.recv = p.now + 5000,
		.size = 1000,
		.received = true,
	};
	ctl_feedback(p.c, p.now + 0.04, p.last, 1);
	TRUE("clock", state(p.c, "nada.queue") < 1);

	/* Receiver reports only: what loss says. */
	path_init(&p, &ctl_nada);
	SAME("no report, no growth", ctl_rate(p.c, 20), 750e3);
	for (int i = 0; i < 20; i++)
		ctl_receiver_report(p.c, 20 + 0.5 * i, 0, 0.04);
	SAME("growth", ctl_rate(p.c, 29.6), 3e6);
	ctl_receiver_report(p.c, 30, 0.02, 0.04);
	SAME("loss", ctl_rate(p.c, 30), 2.55e6);
	ctl_receiver_report(p.c, 30.5, 0, 0.04);
	SAME("rest", ctl_rate(p.c, 30.5), 2.55e6);
	TRUE("a second of silence", ctl_rate(p.c, 31.4) == 2.55e6);
	for (int i = 0; i < 60; i++) {
		ctl_sent(p.c, 31.4 + 0.5 * i, 1000);
		ctl_rate(p.c, 31.4 + 0.5 * i);
	}
	SAME("long silence", ctl_rate(p.c, 62), 300e3);
}

/* Nothing is sent for a while, so nothing is reported: that is no silence of the path. */
TEST(test_nada_pause)
{
	static const struct ctl_kind *const kind[] = {&ctl_nada, &ctl_auto};
	static struct path p;

	for (size_t i = 0; i < ROWS(kind); i++) {
		path_init(&p, kind[i]);
		path_run(&p, 12, true);
		SAME("before", p.rate, 3e6);
		TRUE("at first as before", ctl_rate(p.c, p.now + 0.9) == 3e6);
		SAME("as a new one", ctl_rate(p.c, p.now + 30), 750e3);
		p.now += 30.9;
		path_run(&p, 0.2, false);
		SAME("reports take their time", p.rate, 750e3);
		path_run(&p, 12, true);
		SAME("and up", p.rate, 3e6);
		for (int few = 0; few < 10; few++) {
			p.now += 0.7;
			path_run(&p, 0.1, false);
		}
		TRUE("few pictures, and none reported on", p.rate <= 3e6 / 4);
		path_run(&p, 20, true);
		SAME("and up again", p.rate, 3e6);
		path_run(&p, 5.5, false);
		TRUE("black-out", p.rate <= 3e6 / 4);
		/* what has sunk below that does not rise by itself */
		p.now += 30;
		TRUE("nothing known", ctl_rate(p.c, p.now) == p.rate);
	}
}

/* What has just changed is no queue, and costs nothing. */
static void no_queue(struct path *p, double before)
{
	path_run(p, 0.2, true);
	SAME("no queue", state(p->c, "nada.queue"), 0);
	path_run(p, 10, true);
	TRUE("no lower", p->rate >= 0.8 * before);
}

/* Our clock stands still while we sleep, the peer's goes on: that is no queue. */
TEST(test_nada_sleep)
{
	static const struct ctl_kind *const kind[] = {&ctl_nada, &ctl_auto};
	static const double slept[] = {5, 0.2, -5};
	static struct path p;

	for (size_t i = 0; i < ROWS(kind) * ROWS(slept); i++) {
		double before;

		path_init(&p, kind[i % 2]);
		path_run(&p, 20, true);
		before = p.rate;
		p.ahead = slept[i / 2];
		no_queue(&p, before);
		/* and what comes then is seen */
		p.delay = 0.1;
		path_run(&p, 0.5, true);
		NEAR("a queue", state(p.c, "nada.queue"), 0.1);
		TRUE("is answered", p.rate < 0.8 * before);
	}
}

/* A longer way is no queue either, whatever is still told of the shorter one. */
TEST(test_nada_moved)
{
	static const struct ctl_kind *const kind[] = {&ctl_nada, &ctl_auto};
	static struct path p;

	for (size_t i = 0; i < ROWS(kind); i++) {
		struct fb_packet late;
		double before;

		path_init(&p, kind[i]);
		path_run(&p, 20, true);
		before = p.rate;
		p.delay = 0.15;
		late = (struct fb_packet){.seq = p.seq++,
					  .sent = p.now - 0.01,
					  .recv = 1000 + p.now + 0.01,
					  .size = 1000,
					  .received = true};
		ctl_moved(p.c, p.now);
		ctl_feedback(p.c, p.now + 0.03, &late, 1);
		no_queue(&p, before);
		p.delay = 0.25;
		path_run(&p, 0.5, true);
		NEAR("a queue", state(p.c, "nada.queue"), 0.1);
	}
}

/* A queue is none of a clock, however fast it grows. */
TEST(test_nada_bloat)
{
	static const double grown[] = {0.05, 1, 3}, steps[] = {1, 3, 25};
	static struct path p;

	for (size_t i = 0; i < ROWS(grown) * ROWS(steps); i++) {
		double by = grown[i % 3] / steps[i / 3];

		path_init(&p, &ctl_nada);
		path_run(&p, 20, true);
		for (int k = 1; k <= steps[i / 3]; k++) {
			p.delay = k * by;
			path_run(&p, 0.04, true);
		}
		path_run(&p, 0.2, true);
		NEAR("seen", state(p.c, "nada.queue"), grown[i % 3]);
		path_run(&p, 30, true);
		NEAR("and still", state(p.c, "nada.queue"), grown[i % 3]);
		TRUE("answered", p.rate < 1e6);
	}
}

/* A bottleneck that it fills by itself: the queue is emptied, not balanced. */
TEST(test_nada_queue)
{
	static struct path p;
	double sent;

	path_init(&p, &ctl_nada);
	p.capacity = 2e6;
	path_run(&p, 5, true);
	p.queue = 0;
	sent = (double)p.seq;
	path_run(&p, 60, true);
	TRUE("most of it is used", 8000 * ((double)p.seq - sent) > 0.9 * 60 * 2e6);
	TRUE("short queue", p.queue < 0.015);
	/* Half of it goes to others. */
	p.capacity = 1e6;
	path_run(&p, 0.6, true);
	TRUE("answered", p.rate < 1e6);
	path_run(&p, 1.4, true);
	p.queue = 0;
	path_run(&p, 0.4, true);
	TRUE("drained", p.queue < 0.01);
	path_run(&p, 20, true);
	p.queue = 0;
	sent = (double)p.seq;
	path_run(&p, 30, true);
	TRUE("most of the half is used", 8000 * ((double)p.seq - sent) > 0.85 * 30 * 1e6);
	TRUE("short queue of the half", p.queue < 0.009);
	p.capacity = 2e6;
	path_run(&p, 12, true);
	TRUE("and all again", p.rate > 1.7e6);
}
