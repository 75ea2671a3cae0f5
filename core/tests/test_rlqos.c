/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RL-QoS: its vectors, its law against double precision, and the published simulation: a host of
 * 30 Mbit/s with 8 packets, three routers of 1 Gbit/s with 200, the link to the destination;
 * Poisson sources of 1500-byte packets, at the host each 200 us, at each router each 8 us, the
 * latter for one hop. Messages take no time, as published.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void near_int(int line, const char *what, unsigned long long got, unsigned long long want,
		     unsigned long long tol)
{
	check_that((got > want ? got - want : want - got) <= tol, __FILE__, line,
		   "%s: got %llu, want %llu +-%llu", what, got, want, tol);
}

#define PAQM_NEAR(what, got, want, tol)                                                            \
	near_int(__LINE__, what, (unsigned long long)(got), (unsigned long long)(want), tol)

#include "rlqos_vectors.h"

TEST(test_rlqos_vectors)
{
	paqm_check_rlqos_probability();
	paqm_check_rlqos_means();
	paqm_check_rlqos_catches_up();
	paqm_check_rlqos_downstream();
	paqm_check_rlqos_frames();
	paqm_check_rlqos_turns();
}

TEST(test_rlqos_exponential)
{
	for (paqm_u32 load = 0; load < PAQM_RLQOS_LOAD_MAX; load += 4099) {
		double want = -expm1(-ldexp(load, -24));

		near("1 - exp(-load)", ldexp(paqm_rlqos_probability(load), -32), want,
		     ldexp(1, -29));
	}
}

/* Random lengths: the integers against the formulas. */
TEST(test_rlqos_means_random)
{
	struct paqm_rlqos_params p = paqm_vec_rlqos(350);
	double mean = 0, growth = 0, last = 0;
	struct paqm_rlqos v;
	paqm_u32 state = 1;

	paqm_rlqos_start(&v, &p, 0);
	for (int i = 1; i <= 100000; i++) {
		paqm_u32 len = (state = state * 1664525 + 1013904223) >> 24;

		paqm_rlqos_advance(&v, &p, i * PAQM_RL_MS, len);
		mean += 0.3 * (len - mean);
		growth += 0.3 * (len - last - growth);
		last = len;
		near("mean", ldexp((double)v.mean, -24), mean, 1e-4);
		near("growth", ldexp((double)v.growth, -24), growth, 1e-4);
		if (i % 5 == 0)
			near("load", ldexp(v.load, -24), fmax(0, mean + growth) / 350, 1e-6);
	}
}

#define HOPS 8
#define NEVER 1e9

/* A node: its queue with the packet that is on the link. */
struct hop {
	struct paqm_rlqos v;
	struct paqm_rlqos_params p;
	double service, gap; /* s; of its own source */
	paqm_u32 limit, len, head;
	double born[256], entered[256], arrival, leaves;
	char through[256]; /* goes on to the next node */
	double busy;
	unsigned long offered, thinned, full, lost, sent;
};

struct result {
	double mean, most, late;	 /* ms, %; of the host's packets */
	double use[HOPS], thinned[HOPS]; /* parts */
	double core, full; /* parts: of the host's packets lost behind it, at its own full queue */
};

static struct hop hops[HOPS];

static double exponential(double mean)
{
	return -mean * log1p(-drand48());
}

static void put(struct hop *h, double now, double born, char through)
{
	paqm_u32 at = (h->head + h->len) % 256;

	h->born[at] = born;
	h->through[at] = through;
	if (!h->len++)
		h->leaves = now + h->service;
}

/* A chain of @n hops for @seconds. */
static struct result chain(int n, double seconds)
{
	double now = 0, period = 0.005, sum = 0;
	unsigned long arrived = 0, late = 0, lost = 0;
	struct result r = {0};
	int i, who;

	srand48(7);
	for (i = 0; i < n; i++) {
		struct hop *h = &hops[i];

		h->arrival = h->gap > 0 ? exponential(h->gap) : NEVER;
		h->leaves = NEVER;
		h->len = h->head = 0;
		h->busy = 0;
		h->offered = h->thinned = h->full = h->lost = h->sent = 0;
		paqm_rlqos_start(&h->v, &h->p, 0);
	}
	while (now < seconds) {
		double t = period;

		for (i = 0, who = -1; i < n; i++) {
			if (hops[i].arrival < t) {
				t = hops[i].arrival;
				who = 2 * i;
			}
			if (hops[i].leaves < t) {
				t = hops[i].leaves;
				who = 2 * i + 1;
			}
		}
		now = t;
		if (who < 0) { /* all hear what the next node says, then close their period */
			for (i = 0; i + 1 < n; i++)
				paqm_rlqos_hear(&hops[i].v, &hops[i].p, (paqm_u64)(now * 1e9),
						hops[i + 1].v.load);
			period += 0.005;
			continue;
		}
		struct hop *h = &hops[who / 2], *next = h + 1;

		paqm_rlqos_advance(&h->v, &h->p, (paqm_u64)(now * 1e9), h->len);
		if (who % 2 == 0) {
			h->arrival += exponential(h->gap);
			h->offered++;
			if (paqm_rlqos_thins(&h->v, (paqm_u32)mrand48(), 0))
				h->thinned++;
			else if (h->len >= h->limit)
				h->full++;
			else
				put(h, now, now, h == hops);
			continue;
		}
		double born = h->born[h->head];
		char through = h->through[h->head];

		h->head = (h->head + 1) % 256;
		h->sent++;
		h->busy += h->service;
		h->leaves = --h->len ? now + h->service : NEVER;
		if (!through)
			continue;
		if (who / 2 == n - 1) {
			arrived++;
			sum += now - born;
			late += now - born > 0.008;
			r.most = fmax(r.most, 1000 * (now - born));
			continue;
		}
		paqm_rlqos_advance(&next->v, &next->p, (paqm_u64)(now * 1e9), next->len);
		if (next->len >= next->limit)
			lost++;
		else
			put(next, now, born, 1);
	}
	for (i = 0; i < n; i++) {
		r.use[i] = hops[i].busy / seconds;
		r.thinned[i] = hops[i].offered ? (double)hops[i].thinned / hops[i].offered : 0;
	}
	r.mean = 1000 * sum / arrived;
	r.late = 100.0 * late / arrived;
	r.core = (double)lost / hops[0].sent;
	r.full = (double)hops[0].full / (hops[0].offered - hops[0].thinned);
	return r;
}

/* The published network with @routers routers, 3 in the paper; what k1 and k2 are there. */
static struct result published(int routers, paqm_u32 router_k1, paqm_u32 share_q16)
{
	for (int i = 0; i < routers + 2; i++) {
		int router = i > 0 && i <= routers;
		struct hop *h = &hops[i];

		*h = (struct hop){.p = paqm_vec_rlqos(router ? router_k1 : 8),
				  .service = 12000 / (router ? 1e9 : 30e6),
				  .gap = router ? 8e-6
					 : i	? 0
						: 200e-6,
				  .limit = router ? 200 : 8};
		h->p.share_q16 = share_q16;
	}
	return chain(routers + 2, 10);
}

static void tell(const char *what, const struct result *r)
{
	printf("%s: mean %.2f ms, longest %.2f, above 8 ms %.2f %%, host %.3f, routers %.4f %.4f "
	       "%.4f, thinned %.3f %.3f %.3f %.3f, core lost %.5f, host queue full %.4f\n",
	       what, r->mean, r->most, r->late, r->use[0], r->use[1], r->use[2], r->use[3],
	       r->thinned[0], r->thinned[1], r->thinned[2], r->thinned[3], r->core, r->full);
}

/* Specification, 5.2: what these coefficients give, and others. */
TEST(test_rlqos_published)
{
	struct result r = published(3, 350, PAQM_Q16_ONE / 4);
	int i;

	tell("k1 350, k2 1400", &r);
	near("mean delay", r.mean, 7.35, 0.3);
	near("longest", r.most, 9.56, 0.4);
	for (i = 1; i <= 3; i++) {
		near("use of a router", r.use[i], 1, 0.002);
		near("thinned at a router", r.thinned[i], 0.35, 0.02);
	}
	near("use of the host's link", r.use[0], 0.97, 0.02);
	near("thinned at the host", r.thinned[0], 0.47, 0.02);
	near("lost in the core", r.core, 0, 0.0005);

	/* as few above 8 ms as published, then with a mean that is lower than published */
	r = published(3, 350, PAQM_Q16_ONE / 2);
	tell("k1 350, k2 700", &r);
	near("k2 700: above 8 ms", r.late, 3.75, 1.5);
	near("k2 700: mean delay", r.mean, 6.5, 0.2);

	r = published(3, 280, 0);
	tell("k1 280, no message", &r);
	near("no message: mean delay", r.mean, 7.45, 0.3);
	near("no message: longest", r.most, 9.45, 0.4);
}

/*
 * What the specification expects to fail: a node hears of the next one only. One source of
 * 20 Mbit/s, all links but the last are fast; the last, of 10 Mbit/s, is so many hops away.
 */
TEST(test_rlqos_many_hops)
{
	for (int n = 1; n <= 4; n++) {
		struct result r;

		for (int i = 0; i < n; i++)
			hops[i] = (struct hop){.p = paqm_vec_rlqos(8),
					       .service = 12000 / (i == n - 1 ? 10e6 : 100e6),
					       .gap = i ? 0 : 600e-6,
					       .limit = 8};
		r = chain(n, 10);
		printf("bottleneck %d hops away: thinned %.3f, lost on the way %.3f\n", n,
		       r.thinned[0], r.core);
		check(n > 2 || r.thinned[0] > 0.1, "those next to it thin", r.thinned[0]);
		check(n < 3 || r.thinned[0] < 0.04, "others do not know of it", r.thinned[0]);
		check(n < 3 || r.core > 0.47, "and all is lost in the network", r.core);
	}
}

CHECK_MAIN
