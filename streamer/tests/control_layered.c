// SPDX-License-Identifier: GPL-2.0
/* Layered probing: figures of its formulas, which are static, so its file is part of this one. */
#include "streamer/control/layered.c"
#include <string.h>

#include "core/paqm_bytes.h"
#include "streamer/tests/control_path.h"

/* The ladder of the paper: 20 layers of 100 kbit/s, packets of 1000 bytes. */
static const struct ctl_params paper = {.rate_min = 100e3, .rate_max = 2e6, .packet = 1000};

static struct layered at_layer(int i, double rtt)
{
	static const double option[CTL_OPTIONS] = {20, 30, 0.3, 0, 10, 0};
	struct ctl_params p = paper;
	struct layered s;

	p.option = option;
	ly_init(&s, &p, 0, false);
	s.rtt_min = s.srtt = rtt;
	s.i = i;
	s.phase = NORMAL;
	s.waiting = false;
	s.wait = ly_wait(&s);
	return s;
}

TEST(test_layered_waits)
{
	static const struct {
		double rtt, wait;
	} first[] = {{0.02, 0.25}, {0.05, 0.625}, {0.1, 1.25}, {0.2, 2.5}, {0.4, 5}, {1.2, 10}};
	static const struct {
		int layer, failures;
	} to_cap[] = {{1, 43}, {5, 10}, {10, 6}, {15, 4}, {19, 4}};

	for (size_t i = 0; i < ROWS(first); i++) {
		struct layered s = at_layer(5, first[i].rtt);

		SAME("equation 12", s.wait, first[i].wait);
	}
	for (size_t i = 0; i < ROWS(to_cap); i++) {
		struct layered s = at_layer(to_cap[i].layer, 0.1);
		int n = 0;

		while (s.wait < 10 && n < 100) {
			double longer = s.wait * (1 + to_cap[i].layer / 20.0);

			ly_probed(&s, 0, false);
			SAME("equation 13", s.wait, fmin(10, longer));
			n++;
		}
		SAME("failures until the cap", n, to_cap[i].failures);
	}
}

TEST(test_layered_drops)
{
	static const struct {
		int layer;
		double bears;
		int after;
	} rows[] = {{1, 0.3, 1},   {2, 0.15, 1},   {5, 0.06, 3},
		    {10, 0.03, 8}, {15, 0.02, 12}, {20, 0.015, 17}};
	struct layered s = at_layer(10, 0.1);

	for (size_t i = 0; i < ROWS(rows); i++) {
		SAME("equation 14", ly_bears(&s, rows[i].layer), rows[i].bears);
		SAME("a little more", ly_drop(&s, rows[i].layer, rows[i].bears + 1e-9),
		     rows[i].after);
	}
	SAME("4 % at 1000 kbit/s", ly_drop(&s, 10, 0.04), 8);
	SAME("3 %: what it bears", ly_drop(&s, 10, ly_bears(&s, 10)), 10);
	/* A drop begins the wait anew. */
	s.wait = 9;
	ly_count(&s, 5, 100, 10);
	SAME("dropped", s.i, 6);
	SAME("its wait", s.wait, 1.25);
}

/* The fluid model of one bottleneck, equation (7): trains that rise all the way. */
static double answer(double rate, double capacity, double load)
{
	return rate * capacity / (load + fmax(rate, capacity - load));
}

static struct probe_result report_of(const struct ctl_train *t, double rate, double fs)
{
	return (struct probe_result){.train = t->id,
				     .came = t->packets,
				     .of = t->packets,
				     .rate = rate,
				     .fs = fs,
				     .rtt = 0.1};
}

/* What the receiver tells of a train, as its message. */
static void tell(struct ctl *c, double now, const struct probe_result *f)
{
	uint8_t data[PROBE_REPORT];
	struct ctl_message m = {
		.name = PROBE_NAME, .subtype = PROBE_SUBTYPE, .data = data, .len = sizeof(data)};

	paqm_put32(data, (uint32_t)(f->rate + 0.5));
	data[4] = f->train;
	data[5] = (uint8_t)f->came;
	data[6] = (uint8_t)f->of;
	data[7] = (uint8_t)(f->verdict << 1);
	paqm_put16(data + 8, (uint16_t)fmin(f->fs * 65536, 65535));
	paqm_put16(data + 10, 0);
	paqm_put32(data + 12, (uint32_t)((now - (f->rtt > 0 ? f->rtt : -1)) * 1e6));
	ctl_message(c, now, &m);
}

TEST(test_layered_start)
{
	static const struct {
		double load; /* of 40 Mbit/s */
		double rate[4];
		int trains;
	} rows[] = {{0.2, {33.33, 32.26, 32.05, 32.01}, 2},
		    {0.4, {28.57, 25.64, 24.63, 24.25}, 3},
		    {0.6, {25.00, 20.41, 18.38, 17.35}, 4}};
	struct ctl_params fast = {.rate_min = 2e6, .rate_max = 40e6, .packet = 1500};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct ctl *c = ctl_new(&ctl_layered, &fast, 0);
		double now = 0, rate = 40e6;
		struct ctl_train t;
		int n = 0;

		for (; n < 8; n++) {
			struct probe_result f;

			while (now < 100 && !ctl_train(c, now, &t))
				now += 0.001;
			if (!t.start)
				break;
			NEAR("each at the rate of what arrived", t.rate, rate);
			rate = answer(rate, 40e6, rows[i].load * 40e6);
			if (n < 4)
				WITHIN("equation 7", rate, 1e6 * rows[i].rate[n], 2e-4);
			f = report_of(&t, rate, 1);
			tell(c, now, &f);
		}
		SAME("trains", n, rows[i].trains);
		WITHIN("estimate", state(c, "layered-probing.estimate"), rate, 1e-6);
		SAME("layer", ctl_rate(c, now), 2e6 * floor(rate / 2e6));
		ctl_free(c);
	}
	/* No rising delay: the first train's rate is right. */
	struct ctl *c = ctl_new(&ctl_layered, &paper, 0);
	struct probe_result f;
	struct ctl_train t;

	TRUE("at once", ctl_train(c, 0, &t) && t.start && t.packets == 30);
	SAME("the highest", t.rate, 2e6);
	SAME("meanwhile", ctl_rate(c, 0), 100e3);
	f = report_of(&t, 1.9e6, 0.63);
	tell(c, 0.2, &f);
	SAME("all of it", ctl_rate(c, 0.2), 2e6);
	TRUE("nothing above", !ctl_train(c, 100, &t));
	ctl_free(c);
}

TEST(test_binary)
{
	struct ctl *c = ctl_new(&ctl_binary, &paper, 0);
	static const double rates[] = {1e6, 1.5e6, 1.25e6, 1.125e6};
	double now = 0;
	struct ctl_train t;
	struct probe_result f;

	for (size_t i = 0; i < ROWS(rates); i++) {
		while (now < 10 && !ctl_train(c, now, &t))
			now += 0.001;
		SAME("half of what is left", t.rate, rates[i]);
		f = report_of(&t, 0.9 * t.rate, t.rate > 1.2e6);
		tell(c, now, &f);
	}
	SAME("estimate", state(c, "binary.estimate"), 1187500);
	SAME("layer", ctl_rate(c, now), 1.1e6);
	ctl_free(c);
}

/* Reports in any order, of any train. */
TEST(test_layered_machine)
{
	struct ctl *c = ctl_new(&ctl_layered, &paper, 0);
	struct ctl_train t, u;
	struct probe_result f;
	double now = 0.2, rate = 0;

	ctl_train(c, 0, &t);
	f = report_of(&t, 1e6, 0.2);
	f.train++;
	tell(c, now, &f);
	TRUE("a report of another train says nothing", ctl_train(c, now, &u) && u.id == t.id);
	f = report_of(&t, 550e3, 1);
	tell(c, now, &f);
	while (!ctl_train(c, now, &t))
		now += 0.001;
	WITHIN("where it arrived", t.rate, 550e3, 1e-6);
	f = report_of(&t, 540e3, 0.5);
	tell(c, now, &f);
	SAME("fits", ctl_rate(c, now), 500e3);
	/* Whatever comes: within the ladder, a layer more per probe at the most. */
	for (unsigned int dice = 1, k = 0; k < 2000; k++) {
		dice = dice * 1103515245 + 12345;
		now += 0.01 * (dice >> 28);
		f = (struct probe_result){.train = (uint8_t)(t.id + (dice >> 20) % 3),
					  .came = (dice >> 16) % 31,
					  .of = 30,
					  .verdict = dice & 0x8000 ? PROBE_WHOLE : PROBE_INVALID,
					  .rate = dice,
					  .fs = (dice >> 8 & 255) / 255.0,
					  .rtt = dice & 0x4000 ? 0.1 : NAN};
		rate = ctl_rate(c, now);
		if (dice & 0x2000)
			tell(c, now, &f);
		else
			ctl_receiver_report(c, now, dice & 0x1000 ? 0.05 : 0, 0.1);
		TRUE("a layer more at the most", ctl_rate(c, now) <= rate + 100e3 + 1);
		TRUE("within", ctl_rate(c, now) >= 100e3 && ctl_rate(c, now) <= 2e6);
		ctl_sent(c, now, 3000);
		ctl_train(c, now, &t);
	}
	ctl_free(c);
}

/* Silence halves, down to the base; then only probing leads up again. */
TEST(test_layered_silence)
{
	struct ctl *c = ctl_new(&ctl_layered, &paper, 0);
	struct probe_result f;
	struct ctl_train t;
	double now = 0.2;

	ctl_train(c, 0, &t);
	f = report_of(&t, 1e6, 0.2);
	f.rate = 1.05e6;
	f.fs = 1;
	tell(c, now, &f);
	while (!ctl_train(c, now, &t))
		now += 0.001;
	f = report_of(&t, 1.04e6, 0);
	tell(c, now, &f);
	SAME("layer 10", ctl_rate(c, now), 1e6);
	for (int k = 1; k <= 52; k++)
		ctl_sent(c, now + 0.1 * k, 10000);
	TRUE("half", ctl_rate(c, now + 1.1) <= 500e3);
	SAME("base", ctl_rate(c, now + 5.2), 100e3);
	TRUE("no train meanwhile", !ctl_train(c, now + 5.2, &t));
	ctl_receiver_report(c, now + 5.3, 0, 0.1);
	SAME("no leap", ctl_rate(c, now + 5.3), 100e3);
	TRUE("a probe", !ctl_train(c, now + 6.2, &t) && ctl_train(c, now + 7.2, &t));
	SAME("of the next layer", t.rate, 200e3);
	ctl_free(c);
}
