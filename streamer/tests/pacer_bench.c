// SPDX-License-Identifier: GPL-2.0
/* The pacer by a clock that stands; see pacer_bench.h. */
#include "streamer/tests/pacer_bench.h"

#include <gst/check/gstcheck.h>

gint64 now(struct bench *b)
{
	return (gint64)(gst_clock_get_time(GST_CLOCK(b->clock)) / GST_USECOND) - BEGIN;
}

/* The pacer's thread; the clock stands while it does not wait. */
static GstPadProbeReturn on_sent(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct bench *b = data;
	guint8 head[12];

	(void)pad;
	g_mutex_lock(&b->lock);
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
		GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
		struct sent s = {.at = now(b), .size = gst_buffer_get_size(buf)};

		gst_buffer_extract(buf, 0, head, sizeof(head));
		s.pt = head[1] & 0x7f;
		s.seq = head[3];
		s.ts = GST_READ_UINT32_BE(head + 4);
		s.ssrc = head[11];
		g_array_append_val(b->sent, s);
	} else if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS) {
		b->eos = now(b);
	}
	g_mutex_unlock(&b->lock);
	return GST_PAD_PROBE_OK;
}

void bench_begin(struct bench *b, const char *elements, const char *caps)
{
	GstPad *pad;

	*b = (struct bench){.h = gst_harness_new_parse(elements), .eos = -1};
	g_mutex_init(&b->lock);
	b->sent = g_array_new(FALSE, TRUE, sizeof(struct sent));
	gst_harness_use_testclock(b->h);
	b->clock = gst_harness_get_testclock(b->h);
	gst_test_clock_set_time(b->clock, BEGIN * GST_USECOND);
	pad = gst_element_get_static_pad(b->h->element, "src");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM,
			  on_sent, b, NULL);
	gst_object_unref(pad);
	gst_harness_set_src_caps_str(b->h, caps);
}

void begin_pacer(struct bench *b)
{
	bench_begin(b, "paqmpacer", "application/x-rtp");
	gst_harness_set(b->h, "paqmpacer", "interval", 40 * GST_MSECOND, NULL);
}

void bench_end(struct bench *b)
{
	gst_harness_teardown(b->h);
	gst_object_unref(b->clock);
	g_array_unref(b->sent);
	g_mutex_clear(&b->lock);
}

guint count(struct bench *b)
{
	guint n;

	g_mutex_lock(&b->lock);
	n = b->sent->len;
	g_mutex_unlock(&b->lock);
	return n;
}

struct sent *nth(struct bench *b, guint i)
{
	fail_unless(i < b->sent->len, "packet %u of %u", i, b->sent->len);
	return &g_array_index(b->sent, struct sent, i);
}

/* The pacer has something to send later. */
void stands(struct bench *b)
{
	gst_test_clock_wait_for_next_pending_id(b->clock, NULL);
}

/* Lets time pass from one packet to the next until so many have left. */
void pass(struct bench *b, guint packets)
{
	for (;;) {
		gboolean waits = gst_test_clock_peek_id_count(b->clock) > 0;

		/* in this order: who waits has been counted */
		if (count(b) >= packets)
			break;
		if (waits)
			gst_test_clock_crank(b->clock);
		else
			g_thread_yield(); /* it is about to send, or to wait */
	}
	fail_unless_equals_int(count(b), packets);
}

void set_now(struct bench *b, gint64 us)
{
	gst_test_clock_set_time(b->clock, (GstClockTime)(BEGIN + us) * GST_USECOND);
}

/* Is everything sent that has a time? */
gboolean idle(struct bench *b)
{
	guint64 scheduled;

	gst_harness_get(b->h, "paqmpacer", "packets", &scheduled, NULL);
	return count(b) == scheduled;
}

/* Lets time pass until then. */
void pass_until(struct bench *b, gint64 us)
{
	for (;;) {
		if (gst_test_clock_peek_id_count(b->clock)) {
			if (gst_test_clock_get_next_entry_time(b->clock) >
			    (GstClockTime)(BEGIN + us) * GST_USECOND)
				break;
			gst_test_clock_crank(b->clock);
		} else if (idle(b)) {
			break;
		} else {
			g_thread_yield();
		}
	}
	set_now(b, us);
}

void push_at(struct bench *b, gsize wire, guint8 pt, gboolean marker, guint8 ssrc, guint8 ts)
{
	GstBuffer *buf = gst_buffer_new_allocate(NULL, wire - HEADERS, NULL);
	guint8 head[12] = {
		0x80, (guint8)(pt | (marker ? 0x80 : 0)), 0, b->seq++, [7] = ts, [11] = ssrc};

	gst_buffer_fill(buf, 0, head, sizeof(head));
	fail_unless_equals_int(gst_harness_push(b->h, buf), GST_FLOW_OK);
}

void push(struct bench *b, gsize wire, guint8 pt, gboolean marker, guint8 ssrc)
{
	push_at(b, wire, pt, marker, ssrc, 0);
}

/* A frame of packets with so many bytes on the wire. */
void push_frame(struct bench *b, const guint *wire, guint n)
{
	for (guint i = 0; i < n; i++)
		push(b, wire[i], PT, i == n - 1, OURS);
}

void check_times(struct bench *b, guint from, const gint64 *at, guint n)
{
	for (guint i = 0; i < n; i++)
		fail_unless(nth(b, from + i)->at == at[i],
			    "packet %u left at %" G_GINT64_FORMAT " us, not %" G_GINT64_FORMAT,
			    from + i, nth(b, from + i)->at, at[i]);
}
