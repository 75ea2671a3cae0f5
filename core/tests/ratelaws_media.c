// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Closed loops of ACP, QLBIC and RCP with media, which paces a rate and hears of it 20 times a
 * second; layers, which wind ACP up, and the bound by demands that cures it.
 */
#include "ratelaws.h"

static double jain(const double *rates, int n)
{
	double sum = 0, squares = 0;
	int i;

	for (i = 0; i < n; i++) {
		sum += rates[i];
		squares += rates[i] * rates[i];
	}
	return sum * sum / (n * squares);
}

static struct paqm_rcp_vars rcp_state;

/* Paced senders at a link; the buffer in packets. */
static struct sim_link *media(double mbit, double trip, int count, sim_law law, double buffer)
{
	struct sim_link *link = dumbbell(mbit, trip, count, law);
	int i;

	rcp_state = (struct paqm_rcp_vars){0};
	if (law == law_rcp)
		link->state = &rcp_state;
	link->buffer = buffer * SIM_PACKET;
	for (i = 0; i < count; i++)
		users_of[i]->paced = 1;
	return link;
}

static double spread(int count, double *mean)
{
	double got[64], sum = 0;
	int i;

	for (i = 0; i < count; i++) {
		got[i] = sim_rate(users_of[i]);
		sum += got[i];
	}
	*mean = sum / count;
	return jain(got, count);
}

TEST(test_media_equilibrium)
{
	static const struct {
		sim_law law;
		const char *name;
		double rate, use, queue, by;
	} t[] = {
		{law_acp, "L1, ACP", 2.47, 0.99, 1.5, 2},
		{law_qlbic_paced, "L1, QLBIC", 2.5, 1, 20.6, 6.2},
	};
	unsigned int i;

	for (i = 0; i < ROWS(t); i++) {
		struct sim_link *link = media(10, TRIP, 4, t[i].law, 200);
		struct result r = measured(t[i].name, link, 20, 30);
		double mean, fair = spread(4, &mean);

		near("L1, rate", mean, t[i].rate, 0.03 * t[i].rate);
		near("L1, use", r.use, t[i].use, 0.03);
		near("L1, queue", r.queue, t[i].queue, t[i].by);
		near("L1, users", users(link), 4, 0.12);
		check(fair >= 0.999, "L1, Jain", fair);
	}
}

/* L2: four, of which two leave at 30 s; six join from 45 s on, one per round trip. */
static unsigned long media_come_and_go(const char *name, sim_law law)
{
	struct sim_link *link = media(10, TRIP, 4, law, 200);
	double down, up;
	int i;

	users_of[2]->stop = users_of[3]->stop = 30;
	for (i = 4; i < 10; i++) {
		users_of[i] = sim_add_flow(TRIP / 4, TRIP / 2, 45 + (i - 4) * TRIP);
		users_of[i]->paced = 1;
		sim_via(users_of[i], link);
	}
	sim_run(30);
	down = settles(mbit_of, 0, 2, 30, 44, law == law_acp ? 4.95 : 5);
	sim_run(45);
	users_of[2] = users_of[8];
	users_of[3] = users_of[9];
	up = settles(mbit_of, 0, 8, 45, 59, law == law_acp ? 1.2375 : 1.25);
	printf("%s: settled %.1f and %.1f s, peak %.0f, drops %lu of 70000\n", name, down, up,
	       link->peak / SIM_PACKET, link->drops);
	check(down <= 3, name, down);
	check(up <= 6, name, up);
	return link->drops;
}

TEST(test_media_come_and_go)
{
	CHECK_EQ(media_come_and_go("L2, ACP", law_acp), 0);
	/* mass joins fill its buffer: that is published of it, and stays */
	check(media_come_and_go("L2, QLBIC", law_qlbic_paced) > 100, "L2, QLBIC, drops", 0);
}

TEST(test_media_demands)
{
	static const double want[] = {0.5, 1, 4.2, 4.2};
	struct sim_link *link = media(10, TRIP, 4, law_acp, 200);

	users_of[0]->demand = 0.5e6 / 8;
	users_of[1]->demand = 1e6 / 8;
	measured("L3, ACP", link, 25, 35);
	rates("L3", users_of, want, 4, 0.03);
}

TEST(test_media_links)
{
	static const struct {
		double mbit, trip;
		int users;
	} t[] = {{10, 0.02, 4}, {2, 0.08, 3}, {50, 0.04, 10}, {2, 0.2, 8}};
	unsigned int i;

	for (i = 0; i < ROWS(t); i++) {
		struct sim_link *link = media(t[i].mbit, t[i].trip, t[i].users, law_acp, 200);
		struct result r = measured("L4, ACP", link, 40, 60);
		double mean, fair = spread(t[i].users, &mean);

		check(r.use >= 0.97, "L4, use", r.use);
		check(fair >= 0.99, "L4, Jain", fair);
	}
}

/* Rates of layers, bytes/s, of the ADIVIS reports. */
static const double ladder[] = {8000, 12000, 16000, 24000, 32000, 48000, 64000, 96000};

static double layered(double mbit, int count, int asks)
{
	struct sim_link *link = media(mbit, TRIP, count, law_acp, 200);
	struct result r;
	int i;

	for (i = 0; i < count; i++) {
		users_of[i]->ladder = ladder;
		users_of[i]->layers = (int)ROWS(ladder);
		users_of[i]->asks = asks;
	}
	r = measured(asks ? "L5, layers, with demands" : "L5, layers", link, 30, 90);
	return r.use;
}

/*
 * Layers that do not fit leave the link unused, so ACP winds up to the whole of it, and all senders
 * take a layer at once. The bound by what they ask for cures it.
 */
TEST(test_layers_wind_up)
{
	static const struct {
		double mbit;
		int users;
	} t[] = {{2, 4}, {1, 3}, {1, 2}, {5, 8}};
	unsigned int i;

	for (i = 0; i < ROWS(t); i++) {
		double off = layered(t[i].mbit, t[i].users, 0),
		       on = layered(t[i].mbit, t[i].users, 1);

		check(on >= 1.4 * off, "L5, gain of the bound", on / off);
	}
}

/* RCP counts the packet that is being sent as queue: ten times its part of a round trip is unused.
 */
TEST(test_rcp_media)
{
	static const double mbit[] = {10, 155}, least[] = {0.9, 0.97};
	unsigned int i;

	for (i = 0; i < ROWS(mbit); i++) {
		struct sim_link *link = media(mbit[i], TRIP, 4, law_rcp, 20 * mbit[i]);
		struct result r = measured("RCP", link, 40, 50);
		double mean, fair = spread(4, &mean);

		check(r.use >= least[i], "RCP, use", r.use);
		check(fair >= 0.99, "RCP, Jain", fair);
		check(r.queue <= 20, "RCP, queue", r.queue);
	}
}
