/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The estimator of capacity against a simulated link: one sender, a queue, a device
 * that may swallow a burst, a rate that changes. Times are simulated, in ns.
 */
#include "../paqm_auto.h"
#include "check.h"

#define MS 1000000ULL
#define MBIT 1000000ULL
#define LEN 1250U

static void expect(const char *what, paqm_u64 got, paqm_u64 low, paqm_u64 high)
{
	check_that(got >= low && got <= high, __FILE__, 0, "%s: %llu, expected %llu .. %llu", what,
		   got, low, high);
}

/* A link and its sender; load_q24 == 0: always packets waiting, else that part of the estimate */
struct sim {
	struct paqm_meter meter;
	struct paqm_auto_vars v;
	paqm_u64 now, tick, arrival, free;
	paqm_u64 link; /* bit/s, 0: outage */
	paqm_u64 limit;
	paqm_u64 load_bps; /* fixed load instead of a part of the estimate */
	paqm_u32 load_q24;
	paqm_u32 queue;		   /* packets waiting */
	paqm_u32 burst;		   /* packets that the device takes at once */
	paqm_u32 held;		   /* packets in the device */
	paqm_u64 offered;	   /* bit/s: what the senders have heard of */
	paqm_u64 news;		   /* ns: when they hear again; 0: they know at once */
	unsigned long ticks, over; /* all, and with more queue than allowed */
	int margin;		   /* headroom is kept */
	paqm_u64 most;		   /* highest estimate */
	paqm_u32 longest;	   /* queue */
};

#define NEWS_NS (100 * MS)
#define ALLOWED (9 * LEN)

static void sim_init(struct sim *s, paqm_u64 link)
{
	*s = (struct sim){.link = link, .limit = 200000 * MBIT, .burst = 1};
	paqm_auto_init(&s->v);
	s->tick = PAQM_AUTO_TICK_NS;
}

static paqm_u64 wire_ns(paqm_u64 bps)
{
	return bps ? LEN * 8 * 1000 * MS / bps : 1000000 * MS;
}

/* What the sender sends, bit/s. */
static paqm_u64 sim_load(const struct sim *s)
{
	if (s->load_bps)
		return s->load_bps;
	return paqm_mul_q24(s->news ? s->offered : s->v.capacity, s->load_q24);
}

/* Where there always are packets waiting they are not counted. */
static paqm_u32 sim_waiting(const struct sim *s)
{
	return s->load_q24 || s->load_bps ? s->queue : ALLOWED;
}

/* Packets into the device while it takes some. */
static void sim_fill(struct sim *s)
{
	while (s->held < s->burst && (s->queue || !(s->load_q24 || s->load_bps))) {
		if (s->queue)
			s->queue--;
		if (!s->held)
			s->free = s->now + wire_ns(s->link);
		s->held++;
		paqm_meter_sent(&s->meter, s->now, LEN, s->queue || !(s->load_q24 || s->load_bps));
	}
}

static void sim_run(struct sim *s, paqm_u64 until)
{
	while (s->now < until) {
		paqm_u64 next = s->tick;

		if (s->held && s->free < next)
			next = s->free;
		if ((s->load_q24 || s->load_bps) && s->arrival < next)
			next = s->arrival;
		s->now = next > s->now ? next : s->now;
		if (s->held && s->free <= s->now) {
			s->held--;
			s->free = s->now + wire_ns(s->link);
		}
		if ((s->load_q24 || s->load_bps) && s->arrival <= s->now) {
			s->queue++;
			s->arrival = s->now + wire_ns(sim_load(s));
		}
		if (s->queue > s->longest)
			s->longest = s->queue;
		sim_fill(s);
		if (s->tick <= s->now) {
			struct paqm_auto_in in = {.meter = s->meter,
						  .now = s->now,
						  .limit = s->limit,
						  .queue = sim_waiting(s) * LEN,
						  .backlog = s->margin ? s->queue * LEN : 0,
						  .allowed = ALLOWED};

			paqm_auto_tick(&s->v, &in);
			s->tick += PAQM_AUTO_TICK_NS;
			s->ticks++;
			s->over += in.queue > ALLOWED;
			if (s->news && s->news <= s->now) {
				s->offered = paqm_mul_q24(s->v.capacity,
							  PAQM_Q24_ONE - s->v.headroom_q24);
				s->news += NEWS_NS;
			}
			if (s->v.capacity > s->most)
				s->most = s->v.capacity;
		}
	}
}

/* Always packets waiting: exact, at any rate and with any burst of the device. */
TEST(test_backlogged)
{
	static const paqm_u64 rates[] = {64000,	     1 * MBIT,	  8 * MBIT,
					 100 * MBIT, 1000 * MBIT, 10000 * MBIT};
	static const paqm_u32 bursts[] = {1, 4, 30};
	unsigned int r, b;

	for (r = 0; r < ROWS(rates); r++) {
		for (b = 0; b < ROWS(bursts); b++) {
			struct sim s;

			sim_init(&s, rates[r]);
			s.burst = bursts[b];
			sim_run(&s, rates[r] < MBIT ? 10000 * MS : 1000 * MS);
			expect("backlogged", s.v.capacity, rates[r] * 98 / 100,
			       rates[r] * 102 / 100);
		}
	}
}

TEST(test_change)
{
	struct sim s;

	sim_init(&s, 10 * MBIT);
	sim_run(&s, 1000 * MS);
	s.link = 2 * MBIT;
	sim_run(&s, 1050 * MS);
	expect("50 ms after a fall", s.v.capacity, 0, 5 * MBIT);
	sim_run(&s, 1150 * MS);
	expect("150 ms after a fall, on the safe side", s.v.capacity, 13 * MBIT / 10,
	       25 * MBIT / 10);
	sim_run(&s, 4000 * MS);
	s.link = 10 * MBIT;
	sim_run(&s, 4100 * MS);
	expect("a rise is believed later", s.v.capacity, 2 * MBIT, 6 * MBIT);
	sim_run(&s, 6000 * MS);
	expect("a rise", s.v.capacity, 95 * MBIT / 10, 102 * MBIT / 10);
}

TEST(test_outage)
{
	struct sim s;

	sim_init(&s, 8 * MBIT);
	sim_run(&s, 1000 * MS);
	s.link = 0;
	s.free = 1300 * MS;
	sim_run(&s, 1040 * MS);
	expect("40 ms into an outage", s.v.capacity, 0, 6 * MBIT);
	sim_run(&s, 1200 * MS);
	expect("200 ms into an outage", s.v.capacity, PAQM_AUTO_RATE_MIN, 2 * MBIT);
	s.link = 8 * MBIT;
	sim_run(&s, 3000 * MS);
	expect("after the outage", s.v.capacity, 7 * MBIT, 82 * MBIT / 10);
	s.link = 0;
	s.free = 13000 * MS;
	sim_run(&s, 12000 * MS);
	expect("9 s of outage", s.v.capacity, PAQM_AUTO_RATE_MIN, MBIT / 10);
	s.link = 8 * MBIT;
	sim_run(&s, 14500 * MS);
	expect("1.5 s after 10 s of outage", s.v.capacity, 6 * MBIT, 82 * MBIT / 10);
}

/* Senders do as they are told: a rise is seen only because the estimate grows. */
TEST(test_growth)
{
	struct sim s;

	sim_init(&s, 8 * MBIT);
	s.load_q24 = PAQM_Q24(96, 100);
	sim_run(&s, 4000 * MS);
	expect("found from nothing", s.v.capacity, 76 * MBIT / 10, 92 * MBIT / 10);
	s.link = 16 * MBIT;
	s.most = 0;
	s.longest = 0;
	sim_run(&s, 7000 * MS);
	expect("a rise without backlog", s.v.capacity, 15 * MBIT, 184 * MBIT / 10);
	expect("overshoot", s.most, 0, 19 * MBIT);
	expect("queue of it, packets", s.longest, 1, 60);
	s.link = 4 * MBIT;
	sim_run(&s, 10000 * MS);
	expect("and a fall", s.v.capacity, 37 * MBIT / 10, 44 * MBIT / 10);
}

/*
 * Senders hear every 100 ms. Near the rate that was measured the estimate grows slowly, so a
 * steady link is soon found again; and after a fall the rate before it does not come back, though
 * there is little to measure while senders keep below the link.
 */
TEST(test_near)
{
	struct sim s;

	sim_init(&s, 10 * MBIT);
	s.load_q24 = PAQM_Q24(96, 100);
	s.news = NEWS_NS;
	s.offered = s.v.capacity;
	s.margin = 1;
	sim_run(&s, 5000 * MS);
	s.most = 0;
	s.longest = 0;
	sim_run(&s, 25000 * MS);
	expect("most on a steady link", s.most, 98 * MBIT / 10, 113 * MBIT / 10);
	expect("its queue, packets", s.longest, 0, 9);
	expect("its headroom", s.v.headroom_q24, 0, PAQM_Q24(1, 100));
	s.link = 5 * MBIT;
	sim_run(&s, 25500 * MS);
	s.most = 0;
	sim_run(&s, 30000 * MS);
	expect("most after a fall to half", s.most, 49 * MBIT / 10, 62 * MBIT / 10);
	/* and a rise is found, the faster the further it goes */
	s.link = 20 * MBIT;
	sim_run(&s, 32500 * MS);
	expect("2.5 s after a rise to four times", s.v.capacity, 18 * MBIT, 24 * MBIT);
}

/* @ms of ticks in which all that is allowed is sent and @bytes of it are measured, in @ns each. */
static void ticks(struct paqm_auto_vars *v, struct paqm_auto_in *in, unsigned int ms,
		  paqm_u64 bytes, paqm_u64 ns)
{
	unsigned int i;

	for (i = 0; i < ms / 10; i++) {
		in->now += PAQM_AUTO_TICK_NS;
		in->meter.sent += paqm_bytes_in(v->capacity, PAQM_AUTO_TICK_NS);
		in->meter.bytes += bytes;
		in->meter.ns += ns;
		paqm_auto_tick(v, in);
	}
}

/* Packets that meet where no queue stands tell of no fall; and one is enough to grow from. */
TEST(test_few_packets)
{
	struct paqm_auto_in in = {.limit = 200000 * MBIT, .allowed = ALLOWED};
	struct paqm_auto_vars v;
	paqm_u64 before;

	paqm_auto_init(&v);
	ticks(&v, &in, 2000, LEN * 8, 10 * MS); /* 8 Mbit/s */
	expect("measured", v.capacity, 79 * MBIT / 10, 81 * MBIT / 10);
	ticks(&v, &in, 30, LEN, 5 * MS); /* 2 Mbit/s */
	expect("slow packets without a queue", v.capacity, 7 * MBIT, 81 * MBIT / 10);
	in.queue = ALLOWED;
	ticks(&v, &in, 30, LEN, 5 * MS);
	expect("slow packets of a queue", v.capacity, MBIT, 5 * MBIT);

	paqm_auto_init(&v);
	in.queue = 0;
	ticks(&v, &in, 10, LEN / 2, 2 * MS);
	before = v.capacity;
	ticks(&v, &in, 1000, 0, 0);
	expect("a second after a single packet", v.capacity, before * 108 / 100, before * 3 / 2);
}

TEST(test_unused)
{
	struct paqm_auto_in in = {.now = 0};
	struct sim s;
	paqm_u64 before;

	sim_init(&s, 8 * MBIT);
	sim_run(&s, 1000 * MS);
	before = s.v.capacity;
	/* half of it in use: nothing waits, nothing grows */
	s.load_bps = 4 * MBIT;
	s.arrival = s.now;
	sim_run(&s, 5000 * MS);
	expect("half in use", s.v.capacity, before * 97 / 100, before * 103 / 100);
	before = s.v.capacity;
	in.meter = s.meter;
	in.meter.busy = 0;
	in.limit = s.limit;
	in.now = s.now + 3600000 * MS;
	paqm_auto_wake(&s.v, &in);
	in.now += PAQM_AUTO_TICK_NS;
	expect("after an hour of silence", paqm_auto_tick(&s.v, &in), before * 97 / 100,
	       before * 103 / 100);
}

/* Nothing ever waits: the estimate ends at what the device can do. */
TEST(test_limit)
{
	struct sim s;

	sim_init(&s, 100000 * MBIT);
	s.limit = 1000 * MBIT;
	s.load_q24 = PAQM_Q24(96, 100);
	sim_run(&s, 3000 * MS);
	expect("limit of the device", s.v.capacity, 1000 * MBIT, 1000 * MBIT);
	sim_init(&s, 100000 * MBIT);
	sim_run(&s, 500 * MS);
	expect("100 Gbit/s", s.v.capacity, 98000 * MBIT, 102000 * MBIT);
}

/* What leaves together with the first packet of a busy period says nothing. */
TEST(test_swallowed)
{
	struct paqm_meter m = {0};
	paqm_u64 now = MS;
	int i;

	for (i = 0; i < 20; i++)
		paqm_meter_sent(&m, now, LEN, 1);
	now += 2 * MS; /* the device has room again */
	paqm_meter_sent(&m, now, LEN, 1);
	expect("swallowed burst", m.bytes, 0, 0);
	now += MS;
	paqm_meter_sent(&m, now, LEN, 0);
	expect("bytes measured", m.bytes, LEN, LEN);
	expect("time measured", m.ns, MS, MS);
	now += 50 * MS; /* empty meanwhile */
	paqm_meter_sent(&m, now, LEN, 1);
	expect("no time while empty", m.ns, MS, MS);
}

/* After a measurement a minute in which nothing waits: the estimate stays, at any rate. */
TEST(test_quiet)
{
	static const paqm_u64 rates[] = {MBIT / 4, MBIT, 10 * MBIT, 1000 * MBIT};
	unsigned int i;

	for (i = 0; i < ROWS(rates); i++) {
		struct sim s;

		sim_init(&s, rates[i]);
		sim_run(&s, 3000 * MS);
		s.load_bps = rates[i] / 10;
		sim_run(&s, 63000 * MS);
		expect("estimate after a quiet minute", s.v.capacity, rates[i] / 10 * 9,
		       rates[i] / 10 * 11);
	}
}

/* 20 s of a link that falls to 70 % for 0.4 s in each 2 s; senders hear every 100 ms. */
static void run_stumbling(struct sim *s, int margin)
{
	paqm_u64 end;

	sim_init(s, 10 * MBIT);
	s->load_q24 = PAQM_Q24(96, 100);
	s->news = NEWS_NS;
	s->offered = s->v.capacity;
	s->margin = margin;
	while (s->now < 40000 * MS) {
		if (s->now >= 20000 * MS && s->now < 20001 * MS)
			s->ticks = s->over = 0;
		end = s->now / (2000 * MS) * (2000 * MS);
		s->link = 10 * MBIT;
		sim_run(s, end + 1600 * MS);
		s->link = 7 * MBIT;
		sim_run(s, end + 2000 * MS);
	}
}

/* The queue is too long for about 4 % of the time, whatever the link does. */
TEST(test_headroom)
{
	struct paqm_auto_vars v;
	struct paqm_auto_in in = {.allowed = 1000};
	unsigned long without;
	struct sim s;
	int i;

	run_stumbling(&s, 0);
	without = s.over * 1000 / s.ticks;
	expect("too long without headroom, per mille of the time", without, 80, 1000);
	run_stumbling(&s, 1);
	expect("too long with headroom", s.over * 1000 / s.ticks, 20, 80);
	expect("headroom", s.v.headroom_q24, PAQM_Q24(2, 100), PAQM_Q24(49, 100));

	/* a steady link keeps none */
	sim_init(&s, 10 * MBIT);
	s.load_q24 = PAQM_Q24(96, 100);
	s.margin = 1;
	s.v.headroom_q24 = PAQM_Q24(30, 100);
	sim_run(&s, 20000 * MS);
	expect("headroom of a steady link", s.v.headroom_q24, 0, PAQM_Q24(1, 100));

	/* what one fall leaves stands for 250 ms: that takes a twelfth, not a quarter */
	paqm_auto_init(&v);
	in.backlog = 1001;
	for (i = 1; i <= 25; i++) {
		in.now = i * (paqm_u64)PAQM_AUTO_TICK_NS;
		paqm_auto_tick(&v, &in);
	}
	expect("headroom after one fall", v.headroom_q24, PAQM_Q24(5, 100), PAQM_Q24(9, 100));

	/* an overload that no headroom ends: half is the most; and one late tick is one tick */
	paqm_auto_init(&v);
	in.backlog = 1001;
	for (i = 1; i <= 1000; i++) {
		in.now = i * (paqm_u64)PAQM_AUTO_TICK_NS;
		paqm_auto_tick(&v, &in);
	}
	expect("most headroom", v.headroom_q24, PAQM_AUTO_HEADROOM_MAX_Q24,
	       PAQM_AUTO_HEADROOM_MAX_Q24);
	in.backlog = 1000;
	in.now += 3600000 * MS;
	paqm_auto_tick(&v, &in);
	expect("after a tick that came an hour late", v.headroom_q24,
	       PAQM_AUTO_HEADROOM_MAX_Q24 - PAQM_Q24(1, 100), PAQM_AUTO_HEADROOM_MAX_Q24);
}

CHECK_MAIN
