// SPDX-License-Identifier: GPL-2.0
/* Receiver reports about a stream that is sent, with one that repairs it, by GStreamer's rtpbin. */
#include <gst/check/gstharness.h>
#include <gst/rtp/gstrtcpbuffer.h>

#include "core/paqm_bytes.h"
#include "core/tests/check.h"
#include "streamer/rtp/reports.h"

#define STREAM 77
#define AGAIN 78 /* what is sent again */
#define BLOCK 24
#define HIGHEST 0x10002

static GstHarness *peer;
static GObject *session;
static guint32 lsr, held_s;
static struct reports *reports;
static struct report_block got;
static guint calls;

static void begin(void)
{
	GstElement *bin = gst_element_factory_make("rtpbin", NULL);

	peer = gst_harness_new_with_element(bin, "recv_rtcp_sink_0", NULL);
	gst_harness_set_src_caps_str(peer, "application/x-rtcp");
	g_signal_emit_by_name(bin, "get-internal-session", 0, &session);
	reports = reports_new(session, STREAM);
	gst_object_unref(bin);
}

static void end(void)
{
	gst_harness_teardown(peer);
	reports_free(reports);
	g_clear_object(&session);
}

/* We send a sender report of that time. */
static void send_report(guint64 ntp)
{
	GstBuffer *buf = gst_rtcp_buffer_new(1000);
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	gboolean wanted = TRUE;
	GstRTCPPacket p;

	gst_rtcp_buffer_map(buf, GST_MAP_READWRITE, &rtcp);
	gst_rtcp_buffer_add_packet(&rtcp, GST_RTCP_TYPE_SR, &p);
	gst_rtcp_packet_sr_set_sender_info(&p, STREAM, ntp, 0, 0, 0);
	gst_rtcp_buffer_unmap(&rtcp);
	g_signal_emit_by_name(session, "on-sending-rtcp", buf, FALSE, &wanted);
	check(!wanted, "nobody wants it to be sent", wanted);
	gst_buffer_unref(buf);
}

/* A report of so many blocks; @lost: of 256, in the first, and one more in each further one. */
static void report(guint8 type, guint32 from, guint8 lost, const guint32 *about, guint n)
{
	guint8 p[28 + 2 * BLOCK] = {(guint8)(0x80 | n), type};
	gsize head = type == 200 ? 28 : 8, len = head + (gsize)BLOCK * n;

	paqm_put16(p + 2, (guint16)(len / 4 - 1));
	paqm_put32(p + 4, from);
	for (guint i = 0; i < n; i++) {
		guint8 *block = p + head + (gsize)BLOCK * i;

		paqm_put32(block, about[i]);
		paqm_put32(block + 4, (guint32)(lost + i) << 24 | (100 + i));
		paqm_put32(block + 8, HIGHEST);
		paqm_put32(block + 12, 90);
		paqm_put32(block + 16, lsr);
		paqm_put32(block + 20, held_s << 16);
	}
	gst_harness_push(peer, gst_buffer_new_memdup(p, len));
}

static void on_report(const struct report_block *b, gpointer data)
{
	(void)data;
	got = *b;
	calls++;
}

static guint poll(guint times)
{
	calls = 0;
	while (times--)
		reports_poll(reports, on_report, NULL);
	return calls;
}

/* Two reporters, as while a receiver that was started anew has not been forgotten: once each. */
TEST(test_reporters)
{
	static const guint32 about[] = {STREAM};

	begin();
	CHECK_EQ(poll(1), 0);
	report(201, 1, 5, about, 1);
	CHECK_EQ(poll(5), 1);
	near("lost, by the first", got.fraction_lost, 5 / 256.0, 0);
	report(200, 2, 4, about, 1);
	CHECK_EQ(poll(5), 1);
	near("by the other", got.fraction_lost, 4 / 256.0, 0);
	CHECK_EQ(got.lost, 100);
	CHECK_EQ(got.highest, HIGHEST);
	CHECK_EQ(got.jitter, 90);
	near("no round trip: nothing was sent", got.rtt, 0, 0);
	end();
}

/* By the time since a report of ours was sent, whatever the wall clock has become. */
TEST(test_round_trip)
{
	static const guint32 about[] = {STREAM};
	const guint64 ntp = gst_rtcp_unix_to_ntp((guint64)g_get_real_time() * 1000);

	begin();
	lsr = (guint32)(ntp >> 16);
	report(201, 1, 0, about, 1);
	CHECK_EQ(poll(1), 1);
	near("before it is sent", got.rtt, 0, 0);
	send_report(ntp);
	g_usleep(20000);
	report(201, 1, 0, about, 1);
	CHECK_EQ(poll(1), 1);
	check(got.rtt >= 0.02, "round trip", got.rtt);
	held_s = 3600;
	report(201, 1, 0, about, 1);
	CHECK_EQ(poll(1), 1);
	near("a peer that held it for longer than it is old", got.rtt, 0, 0);
	held_s = 0;
	lsr++;
	report(201, 1, 0, about, 1);
	CHECK_EQ(poll(1), 1);
	near("a report that we never sent", got.rtt, 0, 0);
	lsr--;
	for (guint n = 1; n <= 8; n++) {
		report(201, 1, 0, about, 1);
		CHECK_EQ(poll(1), 1);
		check(got.rtt >= 0.02, "one of the last eight", n);
		send_report(ntp + ((guint64)n << 32));
	}
	report(201, 1, 0, about, 1);
	CHECK_EQ(poll(1), 1);
	near("an older one", got.rtt, 0, 0);
	lsr = 0;
	end();
}

/* A peer with two sources reports by both: the second of them tells of no time, and no loss. */
TEST(test_sources)
{
	static const guint32 about[] = {STREAM};

	begin();
	report(200, 1, 5, about, 1);
	report(201, 2, 0, about, 1);
	CHECK_EQ(poll(5), 1);
	near("lost", got.fraction_lost, 5 / 256.0, 0);
	report(201, 2, 0, about, 1);
	CHECK_EQ(poll(5), 1);
	near("not again", got.fraction_lost, 0, 0);
	end();
}

/* Blocks about both streams, in any order. */
TEST(test_repair)
{
	static const guint32 about[][2] = {{STREAM, AGAIN}, {AGAIN, STREAM}};

	begin();
	for (int i = 0; i < 2; i++) {
		report(201, 1, 8, about[i], 2);
		CHECK_EQ(poll(1), 1);
		near("lost", got.fraction_lost, (8 + i) / 256.0, 0);
	}
	report(201, 1, 8, about[1], 1);
	CHECK_EQ(poll(1), 0);
	end();
}

int main(int argc, char **argv)
{
	gst_init(&argc, &argv);
	return check_run();
}
