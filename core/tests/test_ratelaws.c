// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Closed loops of ACP and QLBIC with windows: the scenarios that were published of them, within the
 * bands of a simulation of the equations in floating point.
 */
#include "ratelaws.h"

static double mean_window(int first, int end)
{
	double sum = 0;
	int i;

	for (i = first; i < end; i++)
		sum += users_of[i]->window;
	return sum / (end - first);
}

TEST(test_acp_capacities)
{
	static const double mbit[] = {10, 50, 155, 500};
	char what[64];
	unsigned int i;

	for (i = 0; i < ROWS(mbit); i++) {
		struct sim_link *link = dumbbell(mbit[i], TRIP, 50, law_acp);
		struct result r;

		snprintf(what, sizeof(what), "A1, ACP, %g Mbit/s", mbit[i]);
		r = measured(what, link, 15, 20);
		check(r.use >= 0.97, "A1, use", r.use);
		check(r.queue <= 5, "A1, queue", r.queue);
		CHECK_EQ(r.drops, 0);
	}
}

TEST(test_acp_round_trips)
{
	static const double trip[] = {0.01, 0.05, 0.1, 0.2, 0.5, 1};
	char what[64];
	unsigned int i;

	for (i = 0; i < ROWS(trip); i++) {
		struct sim_link *link = dumbbell(155, trip[i], 50, law_acp);
		double begin = fmax(5, 90 * trip[i]);
		struct result r;

		snprintf(what, sizeof(what), "A2, ACP, %g s", trip[i]);
		r = measured(what, link, begin, begin + fmax(3, 10 * trip[i]));
		check(r.use >= (i ? 0.97 : 0.94), "A2, use", r.use);
		CHECK_EQ(r.drops, 0);
	}
}

TEST(test_acp_many_users)
{
	static const int count[] = {1, 10, 100, 300, 500, 800, 1000};
	char what[64];
	unsigned int i;

	for (i = 0; i < ROWS(count); i++) {
		struct sim_link *link = dumbbell(155, TRIP, count[i], law_acp);
		double begin = fmax(8, count[i] * TRIP + 5);
		struct result r;

		snprintf(what, sizeof(what), "A3, ACP, %d users", count[i]);
		r = measured(what, link, begin, begin + 8);
		if (count[i] <= 800)
			check(r.use >= (count[i] <= 500 ? 0.95 : 0.9), "A3, use", r.use);
	}
}

static unsigned long long rnd_state = 1;

/* Uniform in (0, 1]; xorshift64*, seeded: the test is the same every time */
static double rnd(void)
{
	rnd_state ^= rnd_state >> 12;
	rnd_state ^= rnd_state << 25;
	rnd_state ^= rnd_state >> 27;
	return (double)((rnd_state * 0x2545F4914F6CDD1DULL >> 11) + 1) / (double)(1ULL << 53);
}

TEST(test_acp_short_flows)
{
	static const double per_s[] = {0, 130, 250, 500};
	char what[64];
	unsigned int i;

	for (i = 0; i < ROWS(per_s); i++) {
		struct sim_link *link = dumbbell(155, TRIP, 50, law_acp);
		struct result r;
		double t = 5;

		rnd_state = 1;
		while (per_s[i] > 0 && (t -= log(rnd()) / per_s[i]) < 40) {
			struct sim_flow *f = sim_add_flow(TRIP / 4, TRIP / 2, t);

			/* Pareto, mean 30, shape 1.35 */
			f->size = ceil(30 * 0.35 / 1.35 * pow(rnd(), -1 / 1.35));
			sim_via(f, link);
		}
		snprintf(what, sizeof(what), "A4, ACP, %g short flows/s", per_s[i]);
		r = measured(what, link, 15, 40);
		check(r.use >= (per_s[i] <= 130 ? 0.93 : 0.88), "A4, use", r.use);
		CHECK_EQ(r.drops, 0);
	}
}

/* E6: 30 users; 20 leave at 30 s; from 45 s on 40 join, one per round trip. */
static struct sim_link *come_and_go(sim_law law)
{
	struct sim_link *link = dumbbell(155, TRIP, 30, law);
	int i;

	for (i = 10; i < 30; i++)
		users_of[i]->stop = 30;
	for (i = 30; i < 70; i++) {
		users_of[i] = sim_add_flow(TRIP / 4, TRIP / 2, 45 + (i - 30) * TRIP);
		sim_via(users_of[i], link);
	}
	return link;
}

TEST(test_acp_come_and_go)
{
	struct sim_link *link = come_and_go(law_acp);
	double most = 0, t, took;

	for (t = 1; t <= 29; t += 0.1) {
		sim_run(t);
		if (t > 8)
			most = fmax(most, users(link));
	}
	printf("E6: windows %.1f, users %.2f", mean_window(0, 30), users(link));
	near("A6, windows of 30 users", mean_window(0, 30), 51.9, 0.04 * 51.9);
	near("A7, 30 users", users(link), 30, 1.5);
	check(most <= 30 * 1.05, "A7, overshoot of the users", most);
	took = settles(window_of, 0, 10, 30, 44, 154);
	printf("; %.1f, users %.2f, after %.1f s", mean_window(0, 10), users(link), took);
	near("A6, windows of 10 users", mean_window(0, 10), 154, 0.04 * 154);
	near("A7, 10 users", users(link), 10, 0.5);
	check(took <= 5, "A6, settled after the leave", took);
	sim_run(48.2);
	took = settles(window_of, 0, 10, 48.2, 59, 31.1);
	printf("; %.1f, users %.2f, after %.1f s; peak %.0f\n", mean_window(0, 10), users(link),
	       took, link->peak / SIM_PACKET);
	near("A6, windows of 50 users", mean_window(0, 10), 31.1, 0.04 * 31.1);
	near("A7, 50 users", users(link), 50, 2.5);
	check(took <= 5, "A6, settled after the joins", took);
	check(link->peak <= 1550 * SIM_PACKET, "A6, longest queue", link->peak);
	CHECK_EQ(link->drops, 0);
}

/* ---------------------------------------------------------------------------- several bottlenecks
 */

static struct sim_link *chain[SIM_LINKS];

static void line(int count, const double *mbit, double delay, double trip)
{
	int i;

	sim_begin();
	for (i = 0; i < count; i++) {
		acp_state[i] = (struct paqm_acp_vars){0};
		chain[i] = sim_add_link(mbit[i], delay, mbit[i] * 1e6 / 8 * trip, law_acp,
					&acp_state[i]);
	}
}

/* A user of links first to last, whose access link has a delay. */
static struct sim_flow *user(int first, int last, double access, double start)
{
	double back = access;
	struct sim_flow *f;
	int i;

	for (i = first; i <= last; i++)
		back += chain[i]->delay;
	f = sim_add_flow(access, back, start);
	for (i = first; i <= last; i++)
		sim_via(f, chain[i]);
	return f;
}

TEST(test_acp_three_links)
{
	static const double mbit[] = {155, 155, 155};
	struct sim_flow *u[7];
	int i;

	line(3, mbit, 0.02, 0.16);
	u[0] = user(0, 2, 0.02, 0);
	u[1] = user(0, 0, 0.02, 0.08);
	for (i = 2; i < 7; i++) /* at an idle link p = C: together they overflow its buffer */
		u[i] = user(i < 4 ? 1 : 2, i < 4 ? 1 : 2, 0.02,
			    i < 4 ? 20 + (i - 2) * 0.5 : 40 + (i - 4) * 0.5);
	sim_run(10);
	sim_mark();
	sim_run(20);
	rates("A5, first", u, (double[]){76.7, 76.7}, 2, 0.03);
	sim_run(30);
	sim_mark();
	sim_run(40);
	rates("A5, second", u, (double[]){51.2, 102.3, 51.2, 51.2}, 4, 0.03);
	sim_run(50);
	sim_mark();
	sim_run(60);
	rates("A5, third", u, (double[]){38.4, 115, 57.5, 57.5, 38.4, 38.4, 38.4}, 7, 0.03);
}

TEST(test_acp_parking_lot)
{
	static const double mbit[] = {155, 155, 155, 80, 155, 155, 155, 155};
	struct sim_flow *f[180];
	int i, k, n = 0;

	line(8, mbit, 0.015, 0.27);
	for (i = 0; i < 20; i++)
		f[n++] = user(0, 7, 0.015, i * 0.27);
	for (k = 0; k < 8; k++)
		for (i = 0; i < 20; i++)
			f[n++] = user(k, k, 0.015, (i + 0.1 * k) * 0.2);
	sim_run(30);
	sim_mark();
	sim_run(38);
	printf("A8, E7: use");
	for (k = 0; k < 8; k++) {
		printf(" %.3f", sim_use(chain[k]));
		check(sim_use(chain[k]) >= 0.97, "A8, use", sim_use(chain[k]));
	}
	puts("");
	for (i = 0; i < n; i++) {
		double want = i < 20 || (i >= 80 && i < 100) ? 1.98 : 5.69;

		near("A8, rate", sim_rate(f[i]), want, 0.04 * want);
	}
}

TEST(test_acp_unequal_round_trips)
{
	static const double mbit[] = {155, 80};
	static const double want[] = {56.25, 12.86, 37.14, 8.86};
	double sum[4] = {0};
	struct sim_flow *f[80];
	int i;

	line(2, mbit, 0.015, 0.26);
	for (i = 0; i < 80; i++)
		f[i] = user(0, i < 10 ? 0 : 1, i < 60 ? 0.015 : i < 70 ? 0.1 : 0.001, i * 0.09);
	sim_run(40);
	sim_mark();
	for (i = 1; i <= 100; i++) {
		int k;

		sim_run(40 + i * 0.1);
		for (k = 0; k < 80; k++)
			sum[(k >= 10) + (k >= 60) + (k >= 70)] += f[k]->window / 100;
	}
	sum[0] /= 10;
	sum[1] /= 50;
	sum[2] /= 10;
	sum[3] /= 10;
	printf("A9, E8: windows %.1f, %.1f, %.1f, %.1f; use %.3f, %.3f\n", sum[0], sum[1], sum[2],
	       sum[3], sim_use(chain[0]), sim_use(chain[1]));
	for (i = 0; i < 4; i++)
		near("A9, window", sum[i], want[i], 0.03 * want[i]);
}

/* -------------------------------------------------------------------------------- QLBIC, windows
 */

TEST(test_qlbic_equilibrium)
{
	static const struct {
		double mbit, trip;
		int users;
		double use, least, most;
	} t[] = {
		{10, TRIP, 50, 0.99, 80, 120},	 {50, TRIP, 50, 0.99, 80, 120},
		{155, TRIP, 50, 0.99, 80, 120},	 {155, 0.01, 50, 0.98, 80, 120},
		{155, 0.2, 50, 0.98, 80, 120},	 {155, 0.5, 50, 0.98, 0, 200},
		{155, TRIP, 10, 0.99, 75, 150},	 {155, TRIP, 100, 0.99, 75, 150},
		{155, TRIP, 300, 0.99, 75, 150},
	};
	char what[64];
	unsigned int i;
	int k;

	for (i = 0; i < ROWS(t); i++) {
		struct sim_link *link =
			dumbbell(t[i].mbit, t[i].trip, t[i].users, law_qlbic_window);
		double begin = fmax(20, (t[i].users + 150) * t[i].trip);
		struct result r;

		link->buffer = fmax(link->buffer, 4e5); /* four times the reference */
		for (k = 0; k < t[i].users; k++) {	/* each is 0.5 ms farther than the last */
			users_of[k]->before += k * 0.0005;
			users_of[k]->after += k * 0.0005;
		}
		snprintf(what, sizeof(what), "QLBIC, %g Mbit/s, %g s, %d", t[i].mbit, t[i].trip,
			 t[i].users);
		r = measured(what, link, begin, begin + fmax(5, 10 * t[i].trip));
		check(r.use >= t[i].use, what, r.use);
		check(r.queue >= t[i].least && r.queue <= t[i].most, what, r.queue);
	}
}

TEST(test_qlbic_come_and_go)
{
	struct sim_link *link = come_and_go(law_qlbic_window);
	static const double ends[] = {29, 44, 59};
	double queue[3];
	int i;

	for (i = 0; i < 3; i++) {
		sim_run(ends[i] - 4);
		CHECK_EQ(link->drops, 0);
		sim_mark();
		sim_run(ends[i]);
		queue[i] = sim_queue(link);
		check(queue[i] >= 80 && queue[i] <= 120, "Q4, queue", queue[i]);
		CHECK_EQ(link->drops, 0);
	}
	printf("Q4: queue %.1f, %.1f, %.1f\n", queue[0], queue[1], queue[2]);
}

CHECK_MAIN
