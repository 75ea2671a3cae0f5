// SPDX-License-Identifier: GPL-2.0
/*
 * The pacer by a clock that stands until the test moves it: when exactly each packet leaves, in
 * microseconds; and the pacer behind the encoder, whose pictures become fewer below its floor.
 */
#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/check/gsttestclock.h>

#include "streamer/gst/gstpaqmh264enc.h"
#include "streamer/gst/gstpaqmpacer.h"
#include "streamer/tests/pacer_bench.h"
#include "streamer/tests/pictures.h"

static const guint four[] = {1000, 1000, 1000, 1000};

static struct bench b; /* of each test, which ends it; pictures of 40 ms */

static void set_up(void)
{
	begin_pacer(&b);
}

/* A packet leaves when as much of the interval is over as of the frame's bytes is sent. */
GST_START_TEST(test_spread)
{
	static const guint wire[] = {1000, 500, 1500, 1000};
	static const gint64 at[] = {0, 10000, 15000, 30000};

	push_frame(&b, wire, 4);
	pass(&b, 4);
	check_times(&b, 0, at, 4);
	for (guint i = 0; i < 4; i++) {
		fail_unless_equals_int(nth(&b, i)->seq, i);
		fail_unless_equals_int(nth(&b, i)->size, wire[i] - HEADERS);
	}
	/* a single packet waits for nothing */
	set_now(&b, 40000);
	push_frame(&b, wire, 1);
	pass(&b, 5);
	fail_unless_equals_int64(nth(&b, 4)->at, 40000);
	bench_end(&b);
}
GST_END_TEST;

/* Frames that come at once or late are spread over 0.7 intervals until the delay is made good. */
GST_START_TEST(test_catching_up)
{
	static const gint64 at[] = {0,	   10000, 20000, 30000, 40000,	47000,	54000,	61000,
				    68000, 76000, 84000, 92000, 100000, 110000, 120000, 130000};

	push_frame(&b, four, 4);
	pass_until(&b, 15000);
	push_frame(&b, four, 4); /* begins at 40, takes 28 instead of 15 ms */
	pass_until(&b, 60000);
	push_frame(&b, four, 4); /* begins at 68, is over at 100: made good */
	pass(&b, 12);
	set_now(&b, 100000);
	push_frame(&b, four, 4);
	pass(&b, 16);
	check_times(&b, 0, at, 16);
	bench_end(&b);
}
GST_END_TEST;

/* A frame that is beyond the rate takes longer than its interval, the next one waits for it. */
GST_START_TEST(test_rate)
{
	/* 4000 bytes at 400 kbit/s: 80 ms; the frames after half of the rate wait no more */
	static const gint64 at[] = {0,	    20000,  40000,  60000,  80000,  100000,
				    120000, 140000, 160000, 170000, 180000, 190000};
	guint64 rate;

	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)400000, NULL);
	gst_harness_get(b.h, "paqmpacer", "rate", &rate, NULL);
	fail_unless_equals_uint64(rate, 400000);
	push_frame(&b, four, 4);
	pass_until(&b, 40000);
	push_frame(&b, four, 4);
	pass(&b, 8);
	set_now(&b, 160000);
	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)4000000, NULL);
	push_frame(&b, four, 4); /* 8 ms would do: spread as ever */
	pass(&b, 12);
	check_times(&b, 0, at, 12);
	bench_end(&b);
}
GST_END_TEST;

/* What waits leaves at the rate, no faster: small frames behind a large one make its delay good. */
GST_START_TEST(test_rate_drains)
{
	static const guint one[] = {500, 500};
	static const gint64 at[] = {0,	    20000,  40000,  60000,  80000,  90000,
				    100000, 110000, 120000, 140000, 160000, 180000};

	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)400000, NULL);
	push_frame(&b, four, 4); /* 80 ms */
	pass_until(&b, 40000);
	push_frame(&b, one, 2); /* 20 ms, not 28 */
	pass_until(&b, 80000);
	push_frame(&b, one, 2); /* likewise, and over when the next one is due */
	pass_until(&b, 120000);
	push_frame(&b, one, 2); /* spread over its interval */
	pass_until(&b, 160000);
	push_frame(&b, one, 2);
	pass(&b, 12);
	check_times(&b, 0, at, 12);
	bench_end(&b);
}
GST_END_TEST;

/* What waits leaves at another rate as soon as there is one. */
GST_START_TEST(test_rate_changes)
{
	static const gint64 at[] = {0,	   20000,  30000,  40000,  50000,  60000,
				    80000, 100000, 110000, 120000, 130000, 140000};

	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)400000, NULL);
	push_frame(&b, four, 4); /* 80 ms */
	pass_until(&b, 20000);
	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)800000, NULL);
	pass_until(&b, 40000);
	push_frame(&b, four, 4); /* from 50 on, over at 90 */
	pass_until(&b, 60000);
	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)400000, NULL);
	pass_until(&b, 100000);
	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)800000, NULL);
	push_frame(&b, four, 4); /* begins at 110, not at 120 */
	pass(&b, 12);
	check_times(&b, 0, at, 12);
	bench_end(&b);
}
GST_END_TEST;

/* No frame waits for longer than half a second. */
GST_START_TEST(test_rate_held)
{
	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)100000, NULL);
	push_frame(&b, four, 4); /* 320 ms */
	pass_until(&b, 40000);
	push_frame(&b, four, 4); /* waits for 280 */
	pass_until(&b, 80000);
	push_frame(&b, four, 4); /* waits for 560: its rate is of no account */
	pass(&b, 12);
	fail_unless_equals_int64(nth(&b, 4)->at, 320000);
	fail_unless_equals_int64(nth(&b, 7)->at, 320000 + 240000);
	fail_unless_equals_int64(nth(&b, 8)->at, 640000);
	fail_unless_equals_int64(nth(&b, 11)->at, 640000 + 21000);
	bench_end(&b);
}
GST_END_TEST;

/* Neither does what waits when the rate falls deep, nor what comes behind it. */
GST_START_TEST(test_rate_falls)
{
	static const guint small[] = {600, 600};

	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)8000000, NULL);
	for (int i = 0; i < 100; i++) /* 100 ms */
		push(&b, 1000, PT, i == 99, OURS);
	pass_until(&b, 10000);
	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)300000, NULL);
	for (int picture = 0; picture < 10; picture++) { /* 240 kbit/s */
		pass_until(&b, 40000 * picture + 10000);
		push_frame(&b, small, 2);
	}
	pass(&b, 120);
	fail_unless(nth(&b, 99)->at > 490000 && nth(&b, 99)->at <= 510000, "%" G_GINT64_FORMAT,
		    nth(&b, 99)->at);
	for (guint i = 100; i < 120; i++) {
		gint64 waited = nth(&b, i)->at - 40000 * (gint64)(i / 2 - 50) - 10000;

		fail_unless(waited <= 540000, "%u: %" G_GINT64_FORMAT, i, waited);
	}
	bench_end(&b);
}
GST_END_TEST;

/* What corrects comes behind its frame, in what is reserved; all is over when the next is due. */
GST_START_TEST(test_reserve)
{
	/* 40 ms / 1.25 for 4000 bytes: 8 us per byte */
	static const gint64 at[] = {0, 8000, 16000, 24000, 32000, 36000, 40000, 48000};
	guint64 repair = 0, all = 0;

	gst_harness_set(b.h, "paqmpacer", "reserve", 25, NULL);
	push_frame(&b, four, 4);
	push(&b, 500, FEC, FALSE, OURS);
	push(&b, 500, FEC, TRUE, OURS);
	pass(&b, 6);
	set_now(&b, 40000);
	push_frame(&b, four, 4);
	pass(&b, 8);
	check_times(&b, 0, at, 8);
	gst_harness_get(b.h, "paqmpacer", "repair-bytes", &repair, "wire-bytes", &all, NULL);
	fail_unless_equals_uint64(repair, 1000);
	fail_unless_equals_uint64(all, 9000);
	bench_end(&b);
}
GST_END_TEST;

/* What is sent again does not wait for the frame's end, and goes at the frame's pace. */
GST_START_TEST(test_again)
{
	/* pace: 10 us per byte */
	static const gint64 at[] = {0, 10000, 13000, 18000, 20000, 23000, 30000};
	static const guint8 ssrc[] = {OURS, OURS, AGAIN, AGAIN, OURS, AGAIN, OURS};

	push_frame(&b, four, 4);
	pass_until(&b, 13000);
	push(&b, 500, 106, TRUE, AGAIN);
	push(&b, 500, 106, TRUE, AGAIN);
	push(&b, 500, 106, TRUE, AGAIN);
	pass(&b, 7);
	check_times(&b, 0, at, 7);
	for (guint i = 0; i < 7; i++)
		fail_unless_equals_int(nth(&b, i)->ssrc, ssrc[i]);
	bench_end(&b);
}
GST_END_TEST;

/* A camera is opened anew, in a larger size and with another SSRC: soon its pictures are spread. */
GST_START_TEST(test_new_ssrc)
{
	static const gint64 at[] = {0, 10000, 20000, 30000};

	for (guint picture = 0; picture < 100; picture++) {
		pass_until(&b, 40000 * picture);
		for (int i = 0; i < 4; i++)
			push(&b, picture < 50 ? 250 : 1000, PT, i == 3,
			     picture < 50 ? OURS : AGAIN);
	}
	pass(&b, 400);
	for (guint i = 0; i < 400; i++) {
		gint64 waited = nth(&b, i)->at - 40000 * (gint64)(i / 4);

		fail_unless(waited >= 0 && waited <= 600000, "%u: %" G_GINT64_FORMAT, i, waited);
		if (i / 4 < 50 || i / 4 >= 75)
			fail_unless_equals_int64(waited, at[i % 4]);
	}
	bench_end(&b);
}
GST_END_TEST;

/* The longest that a packet of this stream waited from @from on, us; all came at multiples of 40
 * ms. */
static gint64 longest(guint8 ssrc, gint64 from, guint in_picture)
{
	gint64 worst = 0;
	guint n = 0;

	for (guint i = 0; i < count(&b); i++) {
		struct sent *s = nth(&b, i);
		gint64 came = 40000 * (gint64)(n / in_picture);

		if (s->ssrc != ssrc)
			continue;
		n++;
		if (came >= from)
			worst = MAX(worst, s->at - came);
	}
	return worst;
}

/*
 * Two cameras in one transport, the first in a thumbnail: neither waits for longer than its picture
 * lasts, and together they keep to the rate.
 */
GST_START_TEST(test_two_streams)
{
	static const guint thumbnail[] = {250, 250};
	gint64 step = 20000;
	guint bytes;

	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)2200000, NULL);
	for (int picture = 0; picture < 100; picture++) {
		pass_until(&b, 40000 * picture);
		push_frame(&b, thumbnail, 2);
		for (int i = 0; i < 10; i++)
			push(&b, 1000, PT, i == 9, AGAIN);
	}
	pass(&b, 1200);
	fail_unless(longest(OURS, 0, 2) <= 40000, "%" G_GINT64_FORMAT, longest(OURS, 0, 2));
	fail_unless(longest(AGAIN, 0, 10) <= 40000, "%" G_GINT64_FORMAT, longest(AGAIN, 0, 10));
	for (guint i = 0, k = 0; i < 1200; i++) {
		for (bytes = 0, k = i; k < 1200 && nth(&b, k)->at < nth(&b, i)->at + step; k++)
			bytes += nth(&b, k)->size + HEADERS;
		/* 5500 in 20 ms */
		fail_unless(bytes <= 5500 + 1000, "%u bytes in 20 ms", bytes);
	}
	bench_end(&b);
}
GST_END_TEST;

/* What another stream sends beyond the rate waits for no more than half a second. */
GST_START_TEST(test_other_stream_held)
{
	gst_harness_set(b.h, "paqmpacer", "rate", (guint64)400000, NULL);
	for (int picture = 0; picture < 50; picture++) {
		pass_until(&b, 40000 * picture);
		push_frame(&b, four, 2);
		for (int i = 0; i < 4; i++) /* 800 kbit/s */
			push(&b, 1000, PT, i == 3, AGAIN);
	}
	pass(&b, 300);
	fail_unless(longest(AGAIN, 0, 4) <= 600000, "%" G_GINT64_FORMAT, longest(AGAIN, 0, 4));
	bench_end(&b);
}
GST_END_TEST;

/* A new interval holds from the next frame on. */
GST_START_TEST(test_interval)
{
	static const gint64 at[] = {0, 10000, 20000, 30000, 40000, 60000, 80000, 100000};

	push_frame(&b, four, 4);
	pass_until(&b, 5000);
	gst_harness_set(b.h, "paqmpacer", "interval", 80 * GST_MSECOND, NULL);
	pass(&b, 4);
	set_now(&b, 40000);
	push_frame(&b, four, 4);
	pass(&b, 8);
	check_times(&b, 0, at, 8);
	bench_end(&b);
}
GST_END_TEST;

/* The end comes behind the last packet, of a frame without a marker too. */
GST_START_TEST(test_eos)
{
	static const gint64 at[] = {0, 20000};
	gint64 eos;

	push(&b, 1000, PT, FALSE, OURS);
	push(&b, 1000, PT, FALSE, OURS);
	fail_unless_equals_int(count(&b), 0);
	fail_unless(gst_harness_push_event(b.h, gst_event_new_eos()));
	pass(&b, 2);
	check_times(&b, 0, at, 2);
	do {
		g_thread_yield();
		g_mutex_lock(&b.lock);
		eos = b.eos;
		g_mutex_unlock(&b.lock);
	} while (eos < 0);
	fail_unless_equals_int64(eos, 20000);
	bench_end(&b);
}
GST_END_TEST;

/* A flush leaves nothing of what was to be sent, and no delay. */
GST_START_TEST(test_flush)
{
	static const gint64 at[] = {0, 15000, 25000};
	GstSegment segment;

	push_frame(&b, four, 4);
	push_frame(&b, four, 4);
	pass(&b, 1);
	stands(&b);
	set_now(&b, 5000);
	fail_unless(gst_harness_push_event(b.h, gst_event_new_flush_start()));
	fail_unless(gst_harness_push_event(b.h, gst_event_new_flush_stop(TRUE)));
	gst_segment_init(&segment, GST_FORMAT_TIME);
	fail_unless(gst_harness_push_event(b.h, gst_event_new_segment(&segment)));
	set_now(&b, 15000);
	push_frame(&b, four, 4);
	pass(&b, 3);
	check_times(&b, 0, at, 3);
	fail_unless_equals_int(nth(&b, 1)->seq, 8);
	bench_end(&b);
}
GST_END_TEST;

/* What waits for another clock's time, which may never come, goes at once. */
GST_START_TEST(test_new_clock)
{
	static const guint8 seq[] = {0, 1, 2, 3};
	GstClock *other = gst_test_clock_new();

	push_frame(&b, four, 4);
	pass(&b, 1);
	stands(&b);
	fail_unless(gst_element_set_clock(b.h->element, other));
	while (count(&b) < 4)
		g_thread_yield();
	for (guint i = 0; i < 4; i++) {
		fail_unless_equals_int(nth(&b, i)->seq, seq[i]);
		fail_unless_equals_int64(nth(&b, i)->at, 0);
	}
	bench_end(&b);
	gst_object_unref(other);
}
GST_END_TEST;

/* It adds one interval at most. */
GST_START_TEST(test_latency)
{
	gst_harness_set_upstream_latency(b.h, 7 * GST_MSECOND);
	fail_unless_equals_uint64(gst_harness_query_latency(b.h), 47 * GST_MSECOND);
	bench_end(&b);
}
GST_END_TEST;

/* What it adds changes with the interval: the pipeline is told, once. */
GST_START_TEST(test_latency_changes)
{
	GstBus *bus = gst_bus_new();
	GstMessage *msg;

	gst_element_set_bus(b.h->element, bus);
	for (int i = 0; i < 2; i++)
		gst_harness_set(b.h, "paqmpacer", "interval", 80 * GST_MSECOND, "reserve", 5, NULL);
	msg = gst_bus_pop_filtered(bus, GST_MESSAGE_LATENCY);
	fail_unless(msg);
	gst_message_unref(msg);
	fail_unless(!gst_bus_pop_filtered(bus, GST_MESSAGE_LATENCY));
	gst_harness_set_upstream_latency(b.h, 7 * GST_MSECOND);
	fail_unless_equals_uint64(gst_harness_query_latency(b.h), 87 * GST_MSECOND);
	gst_element_set_bus(b.h->element, NULL);
	bench_end(&b);
	gst_object_unref(bus);
}
GST_END_TEST;

/* Of a coding without markers a frame ends where the next begins. */
GST_START_TEST(test_no_marker)
{
	static const gint64 at[] = {0, 20000, 40000, 54000}; /* 0.7 of an interval */

	for (guint ts = 1; ts <= 3; ts++)
		for (int i = 0; i < 2; i++)
			push_at(&b, 1000, PT, FALSE, OURS, ts);
	pass(&b, 4);
	check_times(&b, 0, at, 4);
	bench_end(&b);
}
GST_END_TEST;

/* One frame without end is not kept for ever. */
GST_START_TEST(test_no_end)
{
	for (int i = 0; i < 2048; i++)
		push(&b, 100, PT, FALSE, OURS);
	pass(&b, 2048);
	bench_end(&b);
}
GST_END_TEST;

/* Behind the end another stream may begin. */
GST_START_TEST(test_after_eos)
{
	static const gint64 at[] = {0, 10000, 20000, 30000};
	GstSegment segment;

	push_frame(&b, four, 4);
	fail_unless(gst_harness_push_event(b.h, gst_event_new_eos()));
	fail_unless_equals_int(gst_harness_push(b.h, gst_buffer_new()), GST_FLOW_EOS);
	pass(&b, 4);
	for (int turn = 0; turn < 2; turn++) {
		/* whether the end has left already or not */
		fail_unless(gst_harness_push_event(b.h, gst_event_new_stream_start("next")));
		gst_segment_init(&segment, GST_FORMAT_TIME);
		fail_unless(gst_harness_push_event(b.h, gst_event_new_segment(&segment)));
		set_now(&b, (turn + 1) * 100000);
		push_frame(&b, four, 4);
		if (!turn)
			fail_unless(gst_harness_push_event(b.h, gst_event_new_eos()));
	}
	check_times(&b, 0, at, 4);
	pass(&b, 12);
	bench_end(&b);
}
GST_END_TEST;

struct coded {
	gint64 taken, span; /* us */
};

struct floor {
	struct bench *b;
	GArray *coded; /* of struct coded */
};

static void on_picture(GstElement *enc, const GstStructure *p, gpointer data)
{
	struct floor *f = data;
	struct coded c = {0};
	double interval = 0;
	guint64 pts = 0;

	(void)enc;
	fail_unless(gst_structure_get(p, "interval", G_TYPE_DOUBLE, &interval, "pts", G_TYPE_UINT64,
				      &pts, NULL));
	gst_harness_set(f->b->h, "paqmpacer", "interval", (guint64)(interval * GST_SECOND), NULL);
	c.taken = (gint64)(pts / GST_USECOND);
	c.span = (gint64)(interval * GST_SECOND) / GST_USECOND;
	g_array_append_val(f->coded, c);
}

/*
 * Live, below the quality floor: every other picture is left out, the packets of the others
 * take the two intervals exactly, and no picture waits for the one before.
 */
GST_START_TEST(test_floor)
{
	struct floor f = {&b, g_array_new(FALSE, TRUE, sizeof(struct coded))};
	gint64 one = 1000000 / FPS;
	guint at = 0, twice = 0;
	GstElement *enc;

	bench_end(&b);
	bench_begin(&b,
		    "paqmh264enc rate=120000 floor-qp=38 ! rtph264pay mtu=228 config-interval=0 "
		    "aggregate-mode=none ! paqmpacer",
		    PICTURE_CAPS);
	enc = gst_harness_find_element(b.h, "paqmh264enc");
	g_signal_connect(enc, "picture", G_CALLBACK(on_picture), &f);
	gst_object_unref(enc);
	for (guint n = 0; n < 240; n++) {
		GstBuffer *buf = picture(n, 17, 230);

		pass_until(&b, (gint64)(GST_BUFFER_PTS(buf) / GST_USECOND));
		fail_unless_equals_int(gst_harness_push(b.h, buf), GST_FLOW_OK);
	}
	pass_until(&b, 240 * one + 2 * one);
	fail_unless(f.coded->len > 100 && f.coded->len < 170, "%u of 240 pictures", f.coded->len);
	for (guint i = 0; i < f.coded->len; i++) {
		struct coded *c = &g_array_index(f.coded, struct coded, i);
		guint64 total = 0, before = 0;
		guint32 ts = nth(&b, at)->ts;

		for (guint k = at; k < b.sent->len && nth(&b, k)->ts == ts; k++)
			total += nth(&b, k)->size + HEADERS;
		for (; at < b.sent->len && nth(&b, at)->ts == ts; at++) {
			fail_unless_equals_int64(nth(&b, at)->at,
						 c->taken + (gint64)(c->span * before / total));
			before += nth(&b, at)->size + HEADERS;
		}
		twice += c->span > 3 * one / 2;
	}
	fail_unless_equals_int(at, b.sent->len);
	fail_unless(twice > 60, "%u of %u pictures in two intervals", twice, f.coded->len);
	g_array_unref(f.coded);
	bench_end(&b);
}
GST_END_TEST;

static Suite *pacer_suite(void)
{
	Suite *s = suite_create("paqm pacer");
	TCase *tc = tcase_create("by the clock");

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, set_up, NULL);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	tcase_add_test(tc, test_spread);
	tcase_add_test(tc, test_catching_up);
	tcase_add_test(tc, test_rate);
	tcase_add_test(tc, test_rate_drains);
	tcase_add_test(tc, test_rate_changes);
	tcase_add_test(tc, test_rate_held);
	tcase_add_test(tc, test_rate_falls);
	tcase_add_test(tc, test_reserve);
	tcase_add_test(tc, test_again);
	tcase_add_test(tc, test_new_ssrc);
	tcase_add_test(tc, test_two_streams);
	tcase_add_test(tc, test_other_stream_held);
	tcase_add_test(tc, test_interval);
	tcase_add_test(tc, test_eos);
	tcase_add_test(tc, test_flush);
	tcase_add_test(tc, test_new_clock);
	tcase_add_test(tc, test_latency);
	tcase_add_test(tc, test_latency_changes);
	tcase_add_test(tc, test_no_marker);
	tcase_add_test(tc, test_no_end);
	tcase_add_test(tc, test_after_eos);
	tcase_add_test(tc, test_floor);
	return s;
}

GST_CHECK_MAIN(pacer);
