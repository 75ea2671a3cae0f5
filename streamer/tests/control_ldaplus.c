// SPDX-License-Identifier: GPL-2.0
/* LDA+: worked figures of its formulas, which are static, so its file is part of this one. */
#include "streamer/control/ldaplus.c"
#include "streamer/tests/control_path.h"

TEST(test_lda_formulas)
{
	static const struct {
		double rate, capacity, last, t, rtt, after;
	} up[] = {
		{1e6, 10e6, 10e3, 5, 0.04, 1019000},	  {5e6, 10e6, 80e3, 5, 0.04, 5120000},
		{9.5e6, 10e6, 500e3, 5, 0.06, 9963320.5}, {64e3, 1e6, 10e3, 5, 0.2, 83360},
		{9.99e6, 10e6, 300e3, 1, 0.06, 9999985},  {200e3, 2e6, 10e3, 0.5, 0.3, 219000},
	};
	static const struct {
		double rate, loss, rtt, after;
	} down[] = {
		{5e6, 0.01, 0.06, 4.5e6},    {5e6, 0.04, 0.06, 4e6},  {1e6, 0.25, 0.1, 500e3},
		{8e6, 0.001, 0.05, 7747018}, {1e6, 0.04, 0.2, 800e3}, {500e3, 0.01, 0.06, 1e6},
	};
	static const double way[] = {1.019,    1.055064, 1.123387, 1.252357, 1.494146,
				     1.941597, 2.749623, 4.143497, 5.980128, 7.959615};
	double rate = 1e6, increase = 10e3;

	for (size_t i = 0; i < ROWS(up); i++)
		WITHIN("no loss",
		       up[i].rate + lda_increase(up[i].rate, up[i].capacity, up[i].last, up[i].t,
						 up[i].rtt, 1000),
		       up[i].after, 1e-7);
	for (size_t i = 0; i < ROWS(down); i++)
		WITHIN("loss", lda_decrease(down[i].rate, 10e6, down[i].loss, down[i].rtt, 1000),
		       down[i].after, 1e-6);
	for (size_t i = 0; i < ROWS(way); i++) {
		increase = lda_increase(rate, 10e6, increase, 5, 0.04, 1000);
		rate += increase;
		WITHIN("interval after interval", rate, 1e6 * way[i], 1e-6);
	}
	/* Padhye's equation with the limit of timeouts, kbit/s. */
	WITHIN("TCP, 1 %", lda_tcp(0.01, 0.04, 1000), 2246.6e3, 1e-4);
	WITHIN("TCP, 30 %", lda_tcp(0.3, 0.04, 1000), 39.2e3, 2e-3);
	WITHIN("TCP, all", lda_tcp(1, 0.04, 1000), 1.5e3, 0.03);
}

/* Decisions come once per interval, from receiver reports alone. */
TEST(test_lda)
{
	static const double option[CTL_OPTIONS] = {5, 10e6};
	struct ctl_params p = params;
	struct ctl *c;

	p.option = option;
	c = ctl_new(&ctl_ldaplus, &p, 0);
	SAME("start", ctl_rate(c, 0), 750e3);
	ctl_receiver_report(c, 1, 0, 0.04);
	SAME("not before the interval ends", ctl_rate(c, 4.9), 750e3);
	NEAR("more", ctl_rate(c, 5), 750e3 + (2 - 0.075) * 10e3);
	ctl_receiver_report(c, 6, 0.25, 0.2);
	NEAR("half for a quarter lost", ctl_rate(c, 10), (750e3 + 19250) / 2);
	ctl_sent(c, 11, 1000);
	SAME("silence of two intervals", ctl_rate(c, 20), ctl_rate(c, 10));
	ctl_sent(c, 21, 1000);
	TRUE("of three", ctl_rate(c, 26) <= 300e3);
	ctl_free(c);
}
