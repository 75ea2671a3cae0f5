// SPDX-License-Identifier: GPL-2.0
/* Trains: the statistic, the bytes, what a receiver makes of arrivals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/paqm_inband.h"
#include "core/tests/check.h"
#include "streamer/decide/decide.h"
#include "streamer/rtp/probe.h"

#define TRUE(what, condition) check(condition, what, 0)
#define M 30

TEST(test_fs)
{
	int64_t d[M], moved[M];
	double sum = 0, squares = 0;

	for (int k = 0; k < M; k++)
		d[k] = k;
	near("rising", probe_fs(d, M, 0), 1, 1e-12);
	for (int k = 0; k < M; k++)
		d[k] = -k;
	near("falling", probe_fs(d, M, 0), 0, 1e-12);
	memset(d, 0, sizeof(d));
	near("constant", probe_fs(d, M, 0), 0, 1e-12);
	for (int k = 0; k < M; k++)
		d[k] = 1 + k % 2;
	near("alternating", probe_fs(d, M, 0), 120.0 / 435, 1e-12);
	srand48(1);
	for (int train = 0; train < 10000; train++) {
		double fs;

		for (int k = 0; k < M; k++)
			d[k] = lrand48();
		fs = probe_fs(d, M, 0);
		sum += fs;
		squares += fs * fs;
		for (int k = 0; k < M; k++)
			moved[k] = d[k] + 1000000007;
		TRUE("whatever the clocks' distance", probe_fs(moved, M, 0) == fs);
	}
	near("mean of noise", sum / 10000, 0.5, 0.003);
	near("its deviation", sqrt(squares / 10000 - pow(sum / 10000, 2)), 0.064, 0.003);
}

/* An RTP packet of @len bytes with a probe; @media: bytes behind the header. */
static void rtp(uint8_t *p, size_t len, size_t media, const struct probe *probe)
{
	memset(p, 0, len);
	p[0] = 0x90;
	probe_extension(p + 12, len - 12 - media, probe);
}

TEST(test_wire)
{
	static const uint8_t wanted[4 + PROBE_DATA] = {
		0x57, 0x48, 0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 30, 3, 0x00, 0x0f, 0x42, 0x40};
	struct probe in = {0x0102030405060708, 9, 3, 30, PROBE_START | PROBE_PADDING, 1000000}, out;
	uint8_t p[1000], twcc[] = {0x90, 96,   0,    1, 0, 0,	 0, 1, 0, 0,   0,
				   2,	 0xBE, 0xDE, 0, 6, 0x11, 1, 2, 0, 0x3F};
	const uint8_t *data;
	size_t head;

	rtp(p, 32, 0, &in);
	TRUE("20 octets", !memcmp(p + 12, wanted, sizeof(wanted)));
	data = probe_find(p, 32, &head);
	TRUE("found", data == p + 16 && head == 32);
	probe_read(data, &out);
	TRUE("the same", !memcmp(&in, &out, sizeof(in)));
	TRUE("cut", !probe_find(p, 31, &head));
	rtp(p, 1000, 100, &in);
	data = probe_find(p, 1000, &head);
	TRUE("filled up", data && head == 900);
	probe_read(data, &out);
	TRUE("the same, filled up", !memcmp(&in, &out, sizeof(in)));
	memset(p, 0, sizeof(p));
	memcpy(p, twcc, sizeof(twcc));
	probe_write(p + sizeof(twcc), &in);
	TRUE("behind other elements", probe_find(p, 40, &head) == p + sizeof(twcc) && head == 40);
	p[0] = 0x80;
	TRUE("no extension", !probe_find(p, 40, &head) && head == 12);
}

/* A train at @rate with packets of 1000 bytes; OWD of packet k is 20 ms and @delay(k). */
static bool train(struct probes *r, uint8_t id, double rate, double (*delay)(int),
		  bool (*keeps)(int), double skew, uint64_t *last)
{
	bool due = false;

	for (int k = 0; k < M; k++) {
		double t = 100 + k * 8000 / rate;
		struct probe probe = {
			(uint64_t)(t * (1 + skew) * 1e6), id, (uint8_t)k, M, 0, (uint32_t)rate};
		uint8_t p[972];

		rtp(p, sizeof(p), 900, &probe);
		*last = (uint64_t)((t + 0.02 + delay(k)) * 1e9);
		if (keeps(k))
			due = probes_see(r, p, sizeof(p), 1000, *last);
	}
	return due;
}

static double flat(int k)
{
	(void)k;
	return 0;
}

static double growing(int k)
{
	return k * 0.002;
}

static double jitter(int k)
{
	(void)k;
	return drand48() * 1e-3;
}

static bool all(int k)
{
	(void)k;
	return true;
}

static bool not_last(int k)
{
	return k % 10 != 9;
}

/* @now: the receiver's, @later_us: of the sender's clock since its last packet that came. */
static struct probe_result read_report(struct probes *r, uint64_t now, uint32_t later_us)
{
	struct probe_result f = {0};
	uint8_t data[PROBE_REPORT];

	TRUE("16 octets", probes_report(r, data, now) == PROBE_REPORT);
	TRUE("read", probe_heard(data, sizeof(data), r->clock_us + later_us, &f));
	return f;
}

TEST(test_receiver)
{
	struct probe_result f;
	struct probes r = {0};
	uint64_t last;
	int rising = 0;

	TRUE("ends", train(&r, 1, 1e6, growing, all, 0, &last));
	f = read_report(&r, last + 5000000, 45000);
	TRUE("whole", f.verdict == PROBE_WHOLE && f.train == 1 && f.came == M && f.of == M);
	near("delay rises", f.fs, 1, 1e-4);
	near("arrived", f.rate, 800e3, 10);
	near("round trip", f.rtt, 0.04, 1e-4);
	TRUE("nothing more of it", !train(&r, 1, 1e6, flat, all, 0, &last) && !r.open);
	train(&r, 2, 1e6, flat, all, 50e-6, &last);
	f = read_report(&r, last, 1);
	TRUE("a skew of clocks is no trend", f.fs == 0 && !f.trend);
	TRUE("its end is lost", !train(&r, 3, 1e6, flat, not_last, 0, &last));
	TRUE("not yet", !probes_late(&r, last + 100000000));
	TRUE("late", probes_late(&r, last + 600000000));
	f = read_report(&r, last + 600000000, 1);
	TRUE("not whole", f.verdict == PROBE_LATE && f.came == 27);
	/* Jitter of 1 ms is no trend. */
	srand48(2);
	for (int n = 0; n < 1000; n++) {
		train(&r, (uint8_t)(n + 4), 1e6, jitter, all, 0, &last);
		rising += read_report(&r, last, 1).trend;
	}
	TRUE("false trends below 5 %", rising < 50);
}

static bool two(int k)
{
	return k < 2 || k == M - 1;
}

/* As APP packet: 28 octets that others pass over (RFC 3550 section 6.7). */
TEST(test_app)
{
	static const double option[CTL_OPTIONS];
	struct dec *d = dec_new(dec_find("layered-probing"), option, 0);
	uint8_t p[32], app[DEC_APP];
	struct ctl_message m;
	size_t len = 0;

	for (int k = 0; k < M; k++) {
		struct probe probe = {(uint64_t)(8000 * k), 1, (uint8_t)k, M, 0, 1000000};
		struct dec_packet packet = {
			.at = 50 + 0.008 * k, .bytes = 1000, .rtp = p, .readable = sizeof(p)};

		rtp(p, sizeof(p), 0, &probe);
		dec_see(d, 5, &packet);
		TRUE("once", !len);
		len = dec_tell(d, packet.at, 7, app);
	}
	TRUE("28 octets", len == 28 && app[0] == 0x80 && app[1] == 204 &&
				  paqm_get16(app + 2) == 6 && paqm_get32(app + 4) == 7 &&
				  !memcmp(app + 8, "PROB", 4));
	near("the rate", paqm_get32(app + 12), 1e6, 10);
	TRUE("read", dec_read(app, len, &m) && m.name == PROBE_NAME && m.subtype == PROBE_SUBTYPE);
	TRUE("told", !dec_tell(d, 60, 7, app));
	dec_free(d);
}

TEST(test_strange)
{
	struct probes r = {0};
	struct probe probe = {1, 1, 30, 30, 0, 1000000};
	uint8_t p[40], app[16] = {0, 0, 0, 1, 1, 31, 30, 0, 0, 0, 0x01, 0x47, 0xff, 0xff, 0xff, 0};
	struct probe_result f;
	uint64_t last;

	rtp(p, 32, 0, &probe);
	TRUE("index", !probes_see(&r, p, 32, 60, 1) && !r.open);
	probe.packets = 200;
	rtp(p, 32, 0, &probe);
	TRUE("too long", !probes_see(&r, p, 32, 60, 1) && !r.open);
	TRUE("more came than were sent", !probe_heard(app, 16, 0xac00, &f));
	app[5] = 30;
	TRUE("as many", probe_heard(app, 16, 0xac00, &f));
	near("round trip while the clock wraps", f.rtt, 0.0393, 1e-4);
	TRUE("too short", !probe_heard(app, 15, 0, &f));
	train(&r, 1, 1e6, flat, two, 0, &last);
	TRUE("a hole in what came is no fault of the sender",
	     read_report(&r, last, 1).verdict == PROBE_WHOLE);
	train(&r, 2, 1e6, flat, all, 0.2, &last);
	TRUE("not at its rate", read_report(&r, last, 1).verdict == PROBE_INVALID);
}

CHECK_MAIN
