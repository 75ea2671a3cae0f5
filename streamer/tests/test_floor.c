// SPDX-License-Identifier: GPL-2.0
/*
 * The encoder where quality ends and where pictures are lost: fewer, then smaller ones below the
 * quality floor, and the way back.
 */
#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <math.h>

#include "streamer/encoder/encoded.h"
#include "streamer/gst/gstpaqmh264enc.h"
#include "streamer/tests/encoder_harness.h"
#include "streamer/tests/pictures.h"
#include "streamer/rtp/wire.h"

/* Size of the pictures as the next element is told it. */
static gint told_width(GstHarness *h)
{
	GstCaps *caps = gst_pad_get_current_caps(h->sinkpad);
	gint width = 0;

	fail_unless(gst_structure_get_int(gst_caps_get_structure(caps, 0), "width", &width));
	gst_caps_unref(caps);
	return width;
}

/* A stream that changes its size can be decoded throughout: the sizes that come out. */
static void check_decoded(GstHarness *h, struct seen *seen)
{
	GstHarness *dec = gst_harness_new_parse("h264parse ! avdec_h264 max-threads=1");
	GstBuffer *buf;

	gst_harness_set_src_caps_str(dec, "video/x-h264,stream-format=byte-stream,alignment=au,"
					  "framerate=24/1");
	while ((buf = gst_harness_try_pull(h)))
		fail_unless_equals_int(gst_harness_push(dec, buf), GST_FLOW_OK);
	gst_harness_push_event(dec, gst_event_new_eos());
	for (guint i = 0; i < seen->pictures->len; i++) {
		struct picture *p = nth(seen, i);

		buf = gst_harness_pull(dec);
		fail_unless_equals_int(gst_buffer_get_size(buf), p->width * p->height * 3 / 2);
		gst_buffer_unref(buf);
	}
	gst_harness_teardown(dec);
}

/* What cannot be shown well is shown less often, then smaller, and whole again when it can. */
GST_START_TEST(test_quality_floor)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	guint low, high, small = 0, changes = 0;

	g_object_set(h->element, "rate", (guint64)120000, "floor-qp", 38, NULL);
	start(h);
	encode(h, 0, 240, 17, 230);
	low = seen.pictures->len;
	fail_unless(low > 100 && low < 170, "%u of 240 at a low rate", low);
	fail_unless_equals_int(nth(&seen, 0)->width, WIDTH);
	fail_unless_equals_int(told_width(h), WIDTH / 2);
	g_object_set(h->element, "rate", (guint64)6000000, NULL);
	encode(h, 240, 600, 17, 40);
	high = seen.pictures->len - low;
	/* there is plenty at once: nobody waits for groups that are fine enough */
	fail_unless(high >= 359, "%u of 360 at a high rate", high);
	fail_unless_equals_int(told_width(h), WIDTH);
	for (guint i = 0; i < seen.pictures->len; i++) {
		struct picture *p = nth(&seen, i);

		fail_unless(p->wire <= p->bound);
		fail_unless(p->height == (p->width == WIDTH ? HEIGHT : HEIGHT / 2));
		small += p->width == WIDTH / 2;
		if (i && p->width != nth(&seen, i - 1)->width) {
			/* nothing of another size can be referred to */
			fail_unless_equals_int(p->type, 'I');
			changes++;
		}
	}
	fail_unless(small > 40, "%u small pictures", small);
	fail_unless_equals_int(changes, 2);
	check_decoded(h, &seen);
	finish(h, &seen);
}
GST_END_TEST;

/* What hardly fits goes on: seldom, simple, and mostly without beginning afresh. */
GST_START_TEST(test_hardly_fits)
{
	static const struct {
		guint64 rate;
		gboolean nature;
		guint pictures, keys; /* at least, at most */
	} rows[] = {{12000, TRUE, 40, 6}, {30000, FALSE, 120, 5}, {40000, FALSE, 120, 12}};

	for (guint k = 0; k < G_N_ELEMENTS(rows); k++) {
		struct seen seen;
		GstHarness *h = new_encoder(&seen);
		guint keys = 0;

		g_object_set(h->element, "rate", rows[k].rate, NULL);
		start(h);
		if (!rows[k].nature)
			encode(h, 0, 240, 240, 120);
		for (guint n = 0; rows[k].nature && n < 240; n++)
			fail_unless_equals_int(gst_harness_push(h, natural(n)), GST_FLOW_OK);
		for (guint i = 0; i < seen.pictures->len; i++)
			keys += nth(&seen, i)->type == 'I';
		fail_unless(seen.pictures->len >= rows[k].pictures && keys <= rows[k].keys,
			    "%u bit/s: %u pictures, %u of them keys", (guint)rows[k].rate,
			    seen.pictures->len, keys);
		finish(h, &seen);
	}
}
GST_END_TEST;

/* Decode a stream without one of its pictures; the pictures that come out. */
static GPtrArray *decode_without(GPtrArray *stream, guint missing)
{
	GstHarness *dec = gst_harness_new_parse("h264parse ! avdec_h264 max-threads=1");
	GPtrArray *out = g_ptr_array_new_with_free_func((GDestroyNotify)gst_buffer_unref);
	GstBuffer *buf;

	gst_harness_set_src_caps_str(dec, "video/x-h264,stream-format=byte-stream,alignment=au,"
					  "framerate=24/1");
	for (guint i = 0; i < stream->len; i++)
		if (i != missing)
			fail_unless_equals_int(
				gst_harness_push(dec, gst_buffer_ref(g_ptr_array_index(stream, i))),
				GST_FLOW_OK);
	gst_harness_push_event(dec, gst_event_new_eos());
	while ((buf = gst_harness_try_pull(dec)))
		g_ptr_array_add(out, buf);
	gst_harness_teardown(dec);
	return out;
}

static gboolean same_picture(GPtrArray *a, GPtrArray *b, guint from_end)
{
	GstBuffer *x = g_ptr_array_index(a, a->len - 1 - from_end);
	GstBuffer *y = g_ptr_array_index(b, b->len - 1 - from_end);
	GstMapInfo map;
	gboolean same;

	fail_unless(gst_buffer_map(x, &map, GST_MAP_READ));
	same = gst_buffer_memcmp(y, 0, map.data, map.size) == 0;
	gst_buffer_unmap(x, &map);
	return same;
}

/* After a lost picture two waves restore every pixel, without a key frame; so does a group. */
GST_START_TEST(test_refresh_heals)
{
	static const char *const refresh[] = {"intra", "idr"};

	for (guint k = 0; k < 2; k++) {
		GPtrArray *stream =
			g_ptr_array_new_with_free_func((GDestroyNotify)gst_buffer_unref);
		GPtrArray *whole, *holed;
		struct seen seen;
		GstHarness *h = new_encoder(&seen);

		gst_util_set_object_arg(G_OBJECT(h->element), "refresh", refresh[k]);
		g_object_set(h->element, "rate", (guint64)1500000, "wave", 24, NULL);
		start(h);
		for (guint n = 0; n < 96; n++)
			fail_unless_equals_int(gst_harness_push(h, natural(n)), GST_FLOW_OK);
		for (guint n = 0; n < 96; n++)
			g_ptr_array_add(stream, gst_harness_pull(h));
		for (guint n = 1; k == 0 && n < 96; n++)
			fail_unless(nth(&seen, n)->type != 'I');
		whole = decode_without(stream, G_MAXUINT);
		holed = decode_without(stream, 40);
		fail_unless_equals_int(whole->len, 96);
		fail_unless(!same_picture(whole, holed, 96 - 1 - 42), "nothing was lost");
		/* 40 is in the second wave, the third and the fourth end at 71 and 95 */
		fail_unless(same_picture(whole, holed, k ? 96 - 1 - 48 : 0), "%s does not heal",
			    refresh[k]);
		g_ptr_array_unref(whole);
		g_ptr_array_unref(holed);
		g_ptr_array_unref(stream);
		finish(h, &seen);
	}
}
GST_END_TEST;

/* A picture that has two intervals does not run into the next one, whenever the rate changes. */
GST_START_TEST(test_floor_rate_step)
{
	for (guint odd = 0; odd < 2; odd++) {
		const guint fall = 120 + odd, rise = 180 + odd, end = 240;
		double arriving[240] = {0}, ends_at[240] = {0}, queue = 0;
		struct seen seen;
		GstHarness *h = new_encoder(&seen);
		guint pairs = 0;

		g_object_set(h->element, "rate", (guint64)120000, "floor-qp", 38, NULL);
		start(h);
		encode(h, 0, fall, 17, 230);
		g_object_set(h->element, "rate", (guint64)70000, NULL);
		encode(h, fall, rise, 17, 230);
		g_object_set(h->element, "rate", (guint64)200000, NULL);
		encode(h, rise, end, 17, 230);
		for (guint i = 0; i < seen.pictures->len; i++) {
			struct picture *p = nth(&seen, i);
			guint at = (guint)(p->pts / 1e9 * FPS + 0.5);
			guint n = (guint)(p->interval * FPS + 0.5);

			for (guint k = at; k < at + n && k < end; k++)
				arriving[k] += (double)p->wire / n;
			if (at + n <= end)
				ends_at[at + n - 1] = p->rate;
			pairs += n == 2;
		}
		fail_unless(pairs > 30, "%u pictures have two intervals", pairs);
		for (guint k = 0; k < end; k++) {
			double rate = k < fall ? 120000 : k < rise ? 70000 : 200000;
			/* before the first one nothing is seen: it may take three intervals */
			double most = k < 3 ? 3.0 / FPS : 0.012;

			queue = fmax(0, queue + arriving[k] - rate / 8 / FPS);
			/* of one that was coded before a fall, more waits, but not of the next */
			if (ends_at[k] == rate)
				fail_unless(queue <= most * rate / 8 + 1, "picture %u: %f ms", k,
					    queue * 8000 / rate);
		}
		finish(h, &seen);
	}
}
GST_END_TEST;

/* Pictures that have to be simplified to fit are below any floor, whatever their quantizer. */
GST_START_TEST(test_floor_of_what_does_not_fit)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	guint keys = 0;

	g_object_set(h->element, "rate", (guint64)20000, NULL);
	start(h);
	for (guint n = 0; n < 240; n++)
		fail_unless_equals_int(gst_harness_push(h, natural(n)), GST_FLOW_OK);
	fail_unless_equals_int(told_width(h), WIDTH / 2);
	fail_unless(seen.pictures->len > 60, "%u of 240", seen.pictures->len);
	for (guint i = seen.pictures->len - 40; i < seen.pictures->len; i++)
		keys += nth(&seen, i)->type == 'I';
	fail_unless(keys <= 1, "%u of the last 40 began afresh", keys);
	finish(h, &seen);
}
GST_END_TEST;

/* What was simplified is whole again when it fits, where no quantizer may be finer, too. */
GST_START_TEST(test_whole_again)
{
	guint bytes[2];

	for (guint low = 0; low < 2; low++) {
		struct seen seen;
		GstHarness *h = new_encoder(&seen);

		g_object_set(h->element, "rate", (guint64)(low ? 15000 : 3000000), "qp-min", 48,
			     NULL);
		start(h);
		for (guint n = 0; n < 180; n++) {
			if (n == 120)
				g_object_set(h->element, "rate", (guint64)3000000, NULL);
			if (n == 179)
				gst_harness_push_upstream_event(
					h, gst_video_event_new_upstream_force_key_unit(
						   GST_CLOCK_TIME_NONE, TRUE, 0));
			fail_unless_equals_int(gst_harness_push(h, natural(n)), GST_FLOW_OK);
		}
		fail_unless_equals_int(told_width(h), WIDTH);
		fail_unless_equals_int(nth(&seen, seen.pictures->len - 1)->type, 'I');
		bytes[low] = nth(&seen, seen.pictures->len - 1)->bytes;
		finish(h, &seen);
	}
	fail_unless(10 * bytes[1] > 9 * bytes[0], "%u bytes instead of %u", bytes[1], bytes[0]);
}
GST_END_TEST;

/* 52 means never, however coarse. */
GST_START_TEST(test_no_floor)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);

	g_object_set(h->element, "rate", (guint64)120000, "floor-qp", 52, NULL);
	start(h);
	encode(h, 0, 120, 17, 230);
	fail_unless(seen.pictures->len > 90, "%u of 120", seen.pictures->len);
	for (guint i = 0; i < seen.pictures->len; i++)
		fail_unless_equals_int(nth(&seen, i)->width, WIDTH);
	finish(h, &seen);
}
GST_END_TEST;

static Suite *floor_suite(void)
{
	Suite *s = suite_create("paqm floor");
	TCase *tc = tcase_create("all");

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 300);
	gst_paqm_h264_enc_register(NULL);
	tcase_add_test(tc, test_refresh_heals);
	tcase_add_test(tc, test_quality_floor);
	tcase_add_test(tc, test_floor_rate_step);
	tcase_add_test(tc, test_hardly_fits);
	tcase_add_test(tc, test_floor_of_what_does_not_fit);
	tcase_add_test(tc, test_whole_again);
	tcase_add_test(tc, test_no_floor);
	return s;
}

GST_CHECK_MAIN(floor);
