// SPDX-License-Identifier: GPL-2.0
/* RTCP congestion control feedback: bytes as laid out in RFC 8888 section 3.1, and broken ones. */
#include <string.h>

#include "core/paqm_inband.h"
#include "core/tests/check.h"
#include "streamer/rtp/ccfb.h"

#define MS 1000000ULL
#define BODY 8 /* what ccfb_read() gets begins there */

static struct ccfb_entry heard[1024];
static size_t n_heard;

static void hear(const struct ccfb_entry *e, void *data)
{
	(void)data;
	if (n_heard < sizeof(heard) / sizeof(heard[0]))
		heard[n_heard++] = *e;
}

static bool take(const uint8_t *p, size_t len)
{
	uint32_t ntp = 0;

	n_heard = 0;
	return ccfb_read(p, len, &ntp, hear, NULL) && ntp == 0x12345678;
}

/* Two streams; three metric blocks and padding, then two. */
static const uint8_t vector[] = {
	0x8B, 0xCD, 0x00, 0x09, /* V=2, FMT=11, PT=205, length */
	0x0A, 0x0B, 0x0C, 0x0D, /* SSRC of the sender of the report */
	0x11, 0x22, 0x33, 0x44, /* first stream */
	0xFF, 0xFE, 0x00, 0x03, /* begin_seq 65534, num_reports 3 */
	0xC4, 0x00, 0x00, 0x00, /* ECT(0), 1 s before; not received */
	0xE0, 0x33, 0x00, 0x00, /* CE, 51/1024 s before; padding */
	0x55, 0x66, 0x77, 0x88, /* second stream */
	0x00, 0x05, 0x00, 0x02, /* begin_seq 5, num_reports 2 */
	0xBF, 0xFE, 0x9F, 0xFF, /* ECT(1), longer than can be told; not ECT, unknown */
	0x12, 0x34, 0x56, 0x78, /* report time stamp */
};

TEST(test_layout)
{
	struct ccfb c = {0};
	uint8_t p[CCFB_MAX];
	size_t len;

	CHECK_EQ(take(vector + BODY, sizeof(vector) - BODY), true);
	CHECK_EQ(n_heard, 5);
	CHECK_EQ(heard[0].ssrc, 0x11223344);
	CHECK_EQ(heard[0].seq, 65534);
	CHECK_EQ(heard[0].received && heard[0].known, true);
	CHECK_EQ(heard[0].ecn, ECN_ECT0);
	CHECK_EQ(heard[0].before == 1.0, true);
	CHECK_EQ(heard[1].seq, 65535);
	CHECK_EQ(heard[1].received, false);
	CHECK_EQ(heard[2].seq, 0);
	CHECK_EQ(heard[2].ecn, ECN_CE);
	CHECK_EQ(heard[2].before == 51 / 1024.0, true);
	CHECK_EQ(heard[3].ssrc, 0x55667788);
	CHECK_EQ(heard[3].ecn, ECN_ECT1);
	CHECK_EQ(heard[3].received && !heard[3].known, true);
	CHECK_EQ(heard[4].seq, 6);
	CHECK_EQ(heard[4].ecn, ECN_NOT_ECT);
	CHECK_EQ(heard[4].received && !heard[4].known, true);

	/* the same is made of what came */
	ccfb_see(&c, 0, 0x11223344, 65534, ECN_ECT0, 10000 * MS);
	ccfb_see(&c, 0, 0x11223344, 0, ECN_CE, 10950 * MS);
	ccfb_see(&c, 1, 0x55667788, 5, ECN_ECT1, 1 * MS);
	ccfb_see(&c, 1, 0x55667788, 6, ECN_NOT_ECT, 11001 * MS);
	CHECK_EQ(c.ce, 1);
	CHECK_EQ(c.ect, 2);
	len = ccfb_write(&c, p, 0x0A0B0C0D, 0x12345678, 11000 * MS);
	CHECK_EQ(len, sizeof(vector));
	CHECK_EQ(memcmp(p, vector, sizeof(vector)), 0);
	CHECK_EQ(ccfb_write(&c, p, 1, 0x12345678, 11002 * MS), 0);
}

TEST(test_broken)
{
	uint8_t p[sizeof(vector)];
	size_t n;

	/* cut anywhere: only where a block ends does the rest make sense */
	for (n = 0; n < sizeof(vector) - BODY; n++)
		CHECK_EQ(take(vector + BODY, n), false);
	CHECK_EQ(n_heard, 0);
	memcpy(p, vector, sizeof(p));
	p[15] = 200; /* more than there are */
	CHECK_EQ(take(p + BODY, sizeof(p) - BODY), false);
	CHECK_EQ(n_heard, 0);
	p[14] = 0xFF;
	CHECK_EQ(take(p + BODY, sizeof(p) - BODY), false);
	/* no block at all, and one without packets */
	CHECK_EQ(take(vector + sizeof(vector) - 4, 4), true);
	CHECK_EQ(n_heard, 0);
	memset(p, 0, 8);
	memcpy(p + 8, vector + sizeof(vector) - 4, 4);
	CHECK_EQ(take(p, 12), true);
	CHECK_EQ(n_heard, 0);
}

/* The parts of a report that came, as one number per packet from the first on. */
static size_t report(struct ccfb *c, uint64_t now_ns)
{
	uint8_t p[CCFB_MAX];
	size_t len = ccfb_write(c, p, 1, 0x12345678, now_ns);

	CHECK_EQ(len <= sizeof(p), true);
	CHECK_EQ(len, 4 + 4U * paqm_get16(p + 2));
	CHECK_EQ(take(p + BODY, len - BODY), true);
	return n_heard;
}

TEST(test_see)
{
	struct ccfb c = {0};
	uint16_t n;

	CHECK_EQ(ccfb_due(&c, true, 1000 * MS), false);
	for (n = 10; n < 14; n++)
		ccfb_see(&c, 0, 7, n, ECN_ECT0, (uint64_t)n * MS);
	CHECK_EQ(ccfb_due(&c, false, 59 * MS), false);
	CHECK_EQ(ccfb_due(&c, true, 59 * MS), true);
	CHECK_EQ(ccfb_due(&c, false, 60 * MS), true);
	CHECK_EQ(report(&c, 60 * MS), 4);
	CHECK_EQ(heard[0].seq, 10);
	CHECK_EQ(ccfb_due(&c, true, 100 * MS), false);
	/* what was told is told once more; a late one and a copy with a mark count */
	ccfb_see(&c, 0, 7, 16, ECN_ECT0, 61 * MS);
	ccfb_see(&c, 0, 7, 15, ECN_ECT0, 62 * MS);
	ccfb_see(&c, 0, 7, 13, ECN_CE, 63 * MS);
	CHECK_EQ(report(&c, 70 * MS), 7);
	CHECK_EQ(heard[0].seq, 10);
	CHECK_EQ(heard[3].ecn, ECN_CE);
	CHECK_EQ(heard[4].received, false);
	CHECK_EQ(heard[5].received && heard[6].received, true);
	ccfb_see(&c, 0, 7, 14, ECN_ECT0, 71 * MS);
	ccfb_see(&c, 0, 7, 12, ECN_ECT0, 71 * MS); /* has been told twice */
	CHECK_EQ(report(&c, 72 * MS), 3);
	CHECK_EQ(heard[0].seq, 14);
	CHECK_EQ(heard[0].received, true);
	CHECK_EQ(c.overtaken, 2);
	/* one that has been told as missing twice is told again when it comes */
	ccfb_see(&c, 0, 7, 19, ECN_ECT0, 72 * MS);
	CHECK_EQ(report(&c, 72 * MS), 3);
	ccfb_see(&c, 0, 7, 20, ECN_ECT0, 72 * MS);
	CHECK_EQ(report(&c, 72 * MS), 4);
	CHECK_EQ(heard[0].seq == 17 && !heard[0].received, true);
	ccfb_see(&c, 0, 7, 17, ECN_ECT0, 72 * MS);
	CHECK_EQ(report(&c, 72 * MS), 4);
	CHECK_EQ(heard[0].seq == 17 && heard[0].received, true);
	CHECK_EQ(c.overtaken, 3);
	/* another stream begins anew; so do numbers that leap */
	ccfb_see(&c, 0, 8, 500, ECN_ECT1, 73 * MS);
	CHECK_EQ(report(&c, 74 * MS), 1);
	CHECK_EQ(heard[0].ssrc, 8);
	ccfb_see(&c, 0, 8, 30000, ECN_ECT1, 75 * MS);
	CHECK_EQ(report(&c, 76 * MS), 1);
	CHECK_EQ(heard[0].seq, 30000);
	/* a gap within what is remembered, and more than fits in one report */
	ccfb_see(&c, 0, 8, 30200, ECN_ECT1, 77 * MS);
	CHECK_EQ(report(&c, 78 * MS), 201);
	CHECK_EQ(heard[0].received && heard[200].received && !heard[100].received, true);
	for (n = 0; n < 2000; n++)
		ccfb_see(&c, n % 2, 8 + n % 2U, (uint16_t)(30201 + n / 2), ECN_CE, 79 * MS);
	CHECK_EQ(report(&c, 80 * MS), CCFB_KEPT);
	CHECK_EQ(heard[CCFB_KEPT / 2 - 1].seq, 31200);
	CHECK_EQ(c.ce, 2001);
}

CHECK_MAIN
