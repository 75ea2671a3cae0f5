// SPDX-License-Identifier: GPL-2.0
/* SRTP heard from the middle of a stream: srtpenc's packets, of which srtpdec misses the first. */
#include <gst/check/gstharness.h>

#include "core/tests/check.h"
#include "streamer/rtp/carry.h"
#include "streamer/rtp/rollover.h"

#define SSRC 77
#define STEP                                                                                       \
	30000 /* between packets of which only some are made: libsrtp takes this for a way on */
#define SR_PACKETS 20

struct bench {
	GstHarness *enc, *enc_rtcp, *dec, *dec_rtcp;
	struct rollover *rollover;
	guint64 next; /* number of the next packet */
};

static void begin(struct bench *b, guint64 first)
{
	GstBuffer *key = gst_buffer_new_memdup("sixteen bytes of key, 14 salt.", 30);

	GstElement *enc = gst_element_factory_make("srtpenc", NULL);

	carry_use_key(enc, key); /* it does not start without one */
	b->enc = gst_harness_new_with_element(enc, "rtp_sink_0", "rtp_src_0");
	gst_object_unref(enc);
	b->enc_rtcp = gst_harness_new_with_element(b->enc->element, "rtcp_sink_0", "rtcp_src_0");
	b->dec = gst_harness_new_with_padnames("srtpdec", "rtp_sink", "rtp_src");
	b->dec_rtcp = gst_harness_new_with_element(b->dec->element, "rtcp_sink", "rtcp_src");
	b->rollover = rollover_new(b->dec->element, key);
	gst_buffer_unref(key);
	gst_harness_set_src_caps_str(b->enc, "application/x-rtp");
	gst_harness_set_src_caps_str(b->enc_rtcp, "application/x-rtcp");
	gst_harness_set_src_caps_str(b->dec, "application/x-srtp");
	gst_harness_set_src_caps_str(b->dec_rtcp, "application/x-srtcp");
	b->next = first;
}

static void end(struct bench *b)
{
	gst_harness_teardown(b->enc_rtcp);
	gst_harness_teardown(b->enc);
	gst_harness_teardown(b->dec_rtcp);
	gst_harness_teardown(b->dec);
	rollover_free(b->rollover);
}

/* What has gone in comes out again, encrypted or decrypted; NULL: it does not. */
static GstBuffer *through(GstHarness *h, GstBuffer *buf)
{
	gst_harness_push(h, buf);
	return gst_harness_try_pull(h);
}

static GstBuffer *packet(struct bench *b)
{
	guint8 p[40] = {0x80, 96, (guint8)(b->next >> 8), (guint8)b->next, [11] = SSRC};

	b->next++;
	return through(b->enc, gst_buffer_new_memdup(p, sizeof(p)));
}

/* Nobody hears those before this number. */
static void miss(struct bench *b, guint64 number)
{
	while (b->next + STEP < number) {
		b->next += STEP;
		gst_buffer_unref(packet(b));
	}
	b->next = number;
	gst_buffer_unref(packet(b));
}

/* The next so many: how many are authentic? */
static guint heard(struct bench *b, guint packets)
{
	guint n = 0;

	while (packets--) {
		GstBuffer *buf = through(b->dec, packet(b));

		n += buf != NULL;
		gst_clear_buffer(&buf);
	}
	return n;
}

static void report(struct bench *b, guint64 count)
{
	guint8 p[28] = {0x80, 200, [3] = 6, [7] = SSRC};
	GstBuffer *buf;

	GST_WRITE_UINT32_BE(p + SR_PACKETS, (guint32)count);
	buf = through(b->dec_rtcp, through(b->enc_rtcp, gst_buffer_new_memdup(p, sizeof(p))));
	CHECK(buf);
	gst_clear_buffer(&buf);
}

/* Wherever a sender of ours begins, and however long ago: from the first report on. */
TEST(late)
{
	static const guint64 firsts[] = {0, 5, 20000, 32767};
	static const guint64 numbers[] = {40000, 65536, 65541, 100000, 131071, 70 * 65536 + 9};

	for (guint i = 0; i < ROWS(firsts); i++) {
		for (guint k = 0; k < ROWS(numbers); k++) {
			struct bench b;

			begin(&b, firsts[i]);
			gst_buffer_unref(packet(&b));
			miss(&b, numbers[k]);
			same("before a report", heard(&b, 3), numbers[k] < 65536 ? 3 : 0);
			report(&b, b.next - firsts[i]);
			same("after it", heard(&b, 10), 10);
			end(&b);
		}
	}
}

/* Some of what was sent has not come, or comes after the report. */
TEST(lost)
{
	for (int ahead = -10000; ahead <= 10000; ahead += 10000) {
		struct bench b;

		begin(&b, 0);
		miss(&b, 3 * 65536 + 20000);
		heard(&b, 1);
		report(&b, (guint64)((gint64)b.next + ahead));
		same("lost or late", heard(&b, 10), 10);
		end(&b);
	}
}

/* Reports until what comes is authentic: two at most. */
static void soon_heard(struct bench *b, guint64 first)
{
	guint n = 0;

	for (; n < 3 && !heard(b, 5); n++)
		report(b, b->next - first);
	check(n <= 2, "reports", n);
}

/* Numbers begin anew between a report and the next packet: the report after that will do. */
TEST(between)
{
	struct bench b;

	begin(&b, 100);
	miss(&b, 131071 - 1);
	heard(&b, 1);
	CHECK_EQ(b.next, 131072);
	report(&b, b.next - 100);
	same("with the counter of before", heard(&b, 5), 0);
	soon_heard(&b, 100);
	same("from then on", heard(&b, 70000), 70000);
	end(&b);
}

/* Others begin beyond 2^15, and so does what is sent again. */
TEST(others)
{
	struct bench b;

	begin(&b, 65000);
	gst_buffer_unref(packet(&b));
	miss(&b, 65536 + 20);
	soon_heard(&b, 65000);
	end(&b);
}

/* Who is heard keeps his key, whatever a report says; who has gone gets another. */
TEST(proven)
{
	struct bench b;

	begin(&b, 0);
	same("from the first on", heard(&b, 10), 10);
	report(&b, 5 * 65536);
	same("a report that cannot be", heard(&b, 10), 10);
	rollover_leave(b.rollover, SSRC);
	miss(&b, 2 * 65536);
	same("is back", heard(&b, 1), 0);
	report(&b, b.next);
	same("is back, and told", heard(&b, 10), 10);
	end(&b);
}

int main(int argc, char **argv)
{
	gst_init(&argc, &argv);
	return check_run();
}
