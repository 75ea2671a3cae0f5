// SPDX-License-Identifier: GPL-2.0
/*
 * The elements under GstHarness: exact quantizer, frame bound, key frames on
 * demand, rate steps; and that the pacer keeps order and number.
 */
#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <math.h>

#include "streamer/gstpaqmh264enc.h"
#include "streamer/gstpaqmpacer.h"

#define WIDTH 320
#define HEIGHT 192
#define FPS 24

struct seen {
	GArray *pictures; /* of struct picture */
	guint groups;
};

struct picture {
	char type;
	int qp_base;
	double qp, bound, rate;
	guint wire, bytes, gop;
};

static void on_picture(GstElement *enc, const GstStructure *s, gpointer data)
{
	struct seen *seen = data;
	struct picture p = {0};

	(void)enc;
	fail_unless(gst_structure_get(
		s, "qp-base", G_TYPE_INT, &p.qp_base, "qp", G_TYPE_DOUBLE, &p.qp, "bound-bytes",
		G_TYPE_DOUBLE, &p.bound, "rate", G_TYPE_DOUBLE, &p.rate, "wire-bytes", G_TYPE_UINT,
		&p.wire, "bytes", G_TYPE_UINT, &p.bytes, "gop", G_TYPE_UINT, &p.gop, NULL));
	p.type = *gst_structure_get_string(s, "type");
	g_array_append_val(seen->pictures, p);
}

static void on_group(GstElement *enc, const GstStructure *s, gpointer data)
{
	(void)enc;
	(void)s;
	((struct seen *)data)->groups++;
}

static GstHarness *new_encoder(struct seen *seen)
{
	GstHarness *h = gst_harness_new("paqmh264enc");

	seen->pictures = g_array_new(FALSE, TRUE, sizeof(struct picture));
	seen->groups = 0;
	g_signal_connect(h->element, "picture", G_CALLBACK(on_picture), seen);
	g_signal_connect(h->element, "group", G_CALLBACK(on_group), seen);
	return h;
}

static void start(GstHarness *h)
{
	gst_harness_set_src_caps_str(h, "video/x-raw,format=I420,width=320,height=192,"
					"framerate=24/1");
}

/* Moving texture under film grain; every cut-th picture is a cut to another one. */
static GstBuffer *picture(guint n, guint cut, guint detail)
{
	GstBuffer *buf = gst_buffer_new_allocate(NULL, WIDTH * HEIGHT * 3 / 2, NULL);
	guint32 scene = 1 + n / cut;
	GstMapInfo map;

	fail_unless(gst_buffer_map(buf, &map, GST_MAP_WRITE));
	memset(map.data, 128, map.size);
	for (guint y = 0; y < HEIGHT; y++) {
		for (guint x = 0; x < WIDTH; x++) {
			guint32 u = (x + n * 2) / 4, v = (y + n) / 4, grain;
			guint32 r = (u * 73856093U) ^ (v * 19349663U) ^ (scene * 83492791U);

			r ^= r >> 13;
			r *= 2654435761U;
			grain = (x * 2246822519U) ^ (y * 3266489917U) ^ (n * 668265263U);
			grain = ((grain ^ (grain >> 15)) * 2246822519U) >> 29;
			map.data[y * WIDTH + x] =
				(guint8)(124 - detail / 2 + (r >> 24) * detail / 255 + grain);
		}
	}
	gst_buffer_unmap(buf, &map);
	GST_BUFFER_PTS(buf) = gst_util_uint64_scale(n, GST_SECOND, FPS);
	GST_BUFFER_DURATION(buf) = GST_SECOND / FPS;
	return buf;
}

static void encode(GstHarness *h, guint from, guint to, guint cut, guint detail)
{
	for (guint n = from; n < to; n++)
		fail_unless_equals_int(gst_harness_push(h, picture(n, cut, detail)), GST_FLOW_OK);
}

static struct picture *nth(struct seen *seen, guint i)
{
	fail_unless(i < seen->pictures->len);
	return &g_array_index(seen->pictures, struct picture, i);
}

static void finish(GstHarness *h, struct seen *seen)
{
	gst_harness_teardown(h);
	g_array_unref(seen->pictures);
}

/* Mode gop: what RA-SVBR says is what every macroblock gets. */
GST_START_TEST(test_exact_quantizer)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	gboolean moved = FALSE;

	gst_util_set_object_arg(G_OBJECT(h->element), "mode", "gop");
	g_object_set(h->element, "rate", (guint64)600000, NULL);
	start(h);
	encode(h, 0, 96, 40, 120);
	fail_unless_equals_int(seen.pictures->len, 96);
	fail_unless_equals_int(seen.groups, 8);
	for (guint i = 0; i < 96; i++) {
		struct picture *p = nth(&seen, i);

		fail_unless(fabs(p->qp - p->qp_base) < 1e-3, "picture %u: %f, not %d", i, p->qp,
			    p->qp_base);
		fail_unless_equals_int(p->gop, i / 12);
		if (i % 12) {
			fail_unless_equals_int(p->qp_base, nth(&seen, i - 1)->qp_base);
		} else if (i && p->qp_base != nth(&seen, i - 1)->qp_base) {
			moved = TRUE;
		}
	}
	fail_unless(moved, "the quantizer never changed");
	finish(h, &seen);
}
GST_END_TEST;

/* No picture above its bound, no queue above the budget, whatever is shown. */
GST_START_TEST(test_frame_bound)
{
	static const guint64 rates[] = {300000, 1000000, 3000000};

	for (guint k = 0; k < G_N_ELEMENTS(rates); k++) {
		struct seen seen;
		GstHarness *h = new_encoder(&seen);
		double queue = 0;

		g_object_set(h->element, "rate", rates[k], "delay-budget", 12000, NULL);
		start(h);
		encode(h, 0, 120, 17, 230);
		fail_unless(seen.pictures->len > 100);
		for (guint i = 0; i < seen.pictures->len; i++) {
			struct picture *p = nth(&seen, i);

			fail_unless(p->wire <= p->bound, "%u bit/s, picture %u: %u > %f",
				    (guint)rates[k], i, p->wire, p->bound);
			queue = fmax(0, queue + p->wire * 8.0 / rates[k] - 1.0 / FPS);
			fail_unless(queue <= 0.012 + 1e-9 || seen.pictures->len < 120);
		}
		finish(h, &seen);
	}
}
GST_END_TEST;

GST_START_TEST(test_key_frame)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	guint keys = 0, waves = 0;

	g_object_set(h->element, "rate", (guint64)1000000, "refresh", 48, NULL);
	start(h);
	encode(h, 0, 30, 1000, 80);
	gst_harness_push_upstream_event(
		h, gst_video_event_new_upstream_force_key_unit(GST_CLOCK_TIME_NONE, TRUE, 1));
	encode(h, 30, 110, 1000, 80);
	for (guint i = 0; i < seen.pictures->len; i++) {
		keys += nth(&seen, i)->type == 'I';
		waves += nth(&seen, i)->type == 'R';
	}
	fail_unless_equals_int(keys, 2);
	fail_unless_equals_int(nth(&seen, 0)->type, 'I');
	fail_unless_equals_int(nth(&seen, 30)->type, 'I');
	fail_unless(waves >= 1, "no refresh wave began");
	finish(h, &seen);
}
GST_END_TEST;

/* The picture after a change obeys it; the mean follows within 0.3 s. */
GST_START_TEST(test_rate_step)
{
	static const double step[] = {1e6, 400e3, 1.6e6};
	struct seen seen;
	GstHarness *h = new_encoder(&seen);

	for (guint k = 0; k < G_N_ELEMENTS(step); k++) {
		double sum = 0;

		g_object_set(h->element, "rate", (guint64)step[k], NULL);
		if (!k)
			start(h);
		encode(h, k * 48, (k + 1) * 48, 1000, 120);
		fail_unless_equals_int(seen.pictures->len, (k + 1) * 48);
		for (guint i = k * 48; i < (k + 1) * 48; i++) {
			fail_unless_equals_float(nth(&seen, i)->rate, step[k]);
			if (i >= k * 48 + 7 && i < k * 48 + 31)
				sum += nth(&seen, i)->wire * 8.0;
		}
		fail_unless(sum < 1.03 * step[k] && sum > 0.9 * step[k], "at %f: %f", step[k], sum);
	}
	finish(h, &seen);
}
GST_END_TEST;

/* What cannot be shown well is shown less often, and as often as before when it can. */
GST_START_TEST(test_quality_floor)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	guint low, high;

	g_object_set(h->element, "rate", (guint64)120000, "half-rate-qp", 38, NULL);
	start(h);
	encode(h, 0, 240, 17, 230);
	low = seen.pictures->len;
	fail_unless(low > 120 && low < 170, "%u of 240 at a low rate", low);
	for (guint i = 0; i < low; i++)
		fail_unless(nth(&seen, i)->wire <= nth(&seen, i)->bound);
	g_object_set(h->element, "rate", (guint64)6000000, NULL);
	encode(h, 240, 480, 17, 40);
	high = seen.pictures->len - low;
	fail_unless(high > 180, "%u of 240 at a high rate", high);
	finish(h, &seen);
}
GST_END_TEST;

/* libx264's own control follows, too, but later and not to the picture. */
GST_START_TEST(test_cbr)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	double sum[2] = {0};

	g_object_set(h->element, "rate", (guint64)1000000, "delay-budget", 80000, NULL);
	gst_util_set_object_arg(G_OBJECT(h->element), "mode", "cbr");
	start(h);
	encode(h, 0, 72, 1000, 120);
	g_object_set(h->element, "rate", (guint64)400000, NULL);
	encode(h, 72, 144, 1000, 120);
	fail_unless_equals_int(seen.pictures->len, 144);
	for (guint i = 0; i < 144; i++)
		if (i % 72 >= 24)
			sum[i / 72] += nth(&seen, i)->wire * 8.0 / 2;
	fail_unless(sum[0] > 0.7e6 && sum[0] < 1.1e6, "1 Mbit/s: %f", sum[0]);
	fail_unless(sum[1] > 0.28e6 && sum[1] < 0.44e6, "400 kbit/s: %f", sum[1]);
	finish(h, &seen);
}
GST_END_TEST;

GST_START_TEST(test_pacer)
{
	GstHarness *h = gst_harness_new("paqmpacer");
	gint64 begin, end;

	g_object_set(h->element, "interval", (guint64)(20 * GST_MSECOND), NULL);
	gst_harness_set_src_caps_str(h, "application/x-rtp");
	begin = g_get_monotonic_time();
	for (guint i = 0; i < 40; i++) {
		GstBuffer *buf = gst_buffer_new_allocate(NULL, 100 + i, NULL);
		guint8 header[4] = {0x80, (i % 10 == 9 ? 0x80 : 0) | 96, 0, (guint8)i};

		gst_buffer_fill(buf, 0, header, sizeof(header));
		fail_unless_equals_int(gst_harness_push(h, buf), GST_FLOW_OK);
	}
	fail_unless(gst_harness_push_event(h, gst_event_new_eos()));
	for (guint i = 0; i < 40; i++) {
		GstBuffer *buf = gst_harness_pull(h);
		guint8 seq = 255;

		fail_unless(buf != NULL);
		fail_unless_equals_int(gst_buffer_get_size(buf), 100 + i);
		gst_buffer_extract(buf, 3, &seq, 1);
		fail_unless_equals_int(seq, i);
		gst_buffer_unref(buf);
	}
	end = g_get_monotonic_time();
	/* Four frames pushed at once still take three whole intervals, shortened
	 * to what catching up permits, and most of the fourth.
	 */
	fail_unless(end - begin >= 3 * 14000, "the packets came as a burst");
	gst_harness_teardown(h);
}
GST_END_TEST;

static Suite *paqm_suite(void)
{
	Suite *s = suite_create("paqm elements");
	TCase *tc = tcase_create("all");

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 300);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	tcase_add_test(tc, test_exact_quantizer);
	tcase_add_test(tc, test_frame_bound);
	tcase_add_test(tc, test_key_frame);
	tcase_add_test(tc, test_rate_step);
	tcase_add_test(tc, test_cbr);
	tcase_add_test(tc, test_quality_floor);
	tcase_add_test(tc, test_pacer);
	return s;
}

GST_CHECK_MAIN(paqm);
