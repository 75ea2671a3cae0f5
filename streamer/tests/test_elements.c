// SPDX-License-Identifier: GPL-2.0
/*
 * The encoder under GstHarness: exact quantizer, frame bound, key frames on
 * demand, rate steps.
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

#define CUT_HEADERS 48

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

/*
 * Sizes follow the commanded quantizer, at the commanded group; no picture is missing and
 * time does not jump.
 */
GST_START_TEST(test_commanded_quantizer)
{
	static const gint qp[] = {24, 36, 24, 30, 18};
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	guint bytes[G_N_ELEMENTS(qp)] = {0};
	GstBuffer *buf;

	gst_util_set_object_arg(G_OBJECT(h->element), "mode", "gop");
	gst_util_set_object_arg(G_OBJECT(h->element), "refresh", "idr");
	for (guint k = 0; k < G_N_ELEMENTS(qp); k++) {
		/* the wider limit first, so that they never cross */
		g_object_set(h->element, "qp-min", MIN(qp[k], 18), "qp-max", qp[k], NULL);
		g_object_set(h->element, "qp-min", qp[k], NULL);
		if (!k)
			start(h);
		encode(h, k * 12, k * 12 + 12, 1000, 120);
	}
	fail_unless_equals_int(seen.pictures->len, 12 * G_N_ELEMENTS(qp));
	for (guint i = 0; i < seen.pictures->len; i++) {
		struct picture *p = nth(&seen, i);

		fail_unless_equals_int(p->qp_base, qp[i / 12]);
		fail_unless(fabs(p->qp - qp[i / 12]) < 1e-3);
		bytes[i / 12] += p->bytes;
		buf = gst_harness_pull(h);
		fail_unless_equals_uint64(GST_BUFFER_PTS(buf),
					  gst_util_uint64_scale(i, GST_SECOND, FPS));
		gst_buffer_unref(buf);
	}
	fail_unless(bytes[4] > bytes[0] && bytes[0] > bytes[3] && bytes[3] > bytes[1]);
	fail_unless(bytes[2] > 0.9 * bytes[0] && bytes[2] < 1.1 * bytes[0]);
	finish(h, &seen);
}
GST_END_TEST;

/* Bits of each group of a stream whose rate changes every eight groups, per allowance. */
static void run_groups(double gamma, const double *step, guint steps, double *share)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);

	gst_util_set_object_arg(G_OBJECT(h->element), "mode", "gop");
	gst_util_set_object_arg(G_OBJECT(h->element), "refresh", "idr");
	g_object_set(h->element, "gamma", gamma, NULL);
	for (guint n = 0; n < steps * 96; n++) {
		if (n % 96 == 0)
			g_object_set(h->element, "rate", (guint64)step[n / 96], NULL);
		if (!n)
			start(h);
		fail_unless_equals_int(gst_harness_push(h, natural(n)), GST_FLOW_OK);
	}
	for (guint i = 0; i < steps * 8; i++) {
		share[i] = 0;
		for (guint n = i * 12; n < i * 12 + 12; n++)
			share[i] += nth(&seen, n)->wire * 8.0 / (step[i / 8] * 12 / FPS);
	}
	finish(h, &seen);
}

/*
 * RA-SVBR alone with a real encoder: the mean over the second to the fifth group after the
 * one in which the rate changed is within 10 % of the allowance.
 */
GST_START_TEST(test_group_step)
{
	static const double step[] = {3e6, 1.2e6, 3e6};

	for (guint gamma = 0; gamma < 2; gamma++) {
		double share[24];

		run_groups(gamma, step, 3, share);
		for (guint i = 8; i < 24; i += 8) {
			double mean =
				(share[i + 2] + share[i + 3] + share[i + 4] + share[i + 5]) / 4;

			fail_unless(fabs(mean - 1) < 0.1, "gamma %u, group %u: %f", gamma, i, mean);
		}
	}
}
GST_END_TEST;

/* Where bits fall twice as steeply as the model says it swings; an estimate ends that. */
GST_START_TEST(test_steep_content)
{
	static const double step[] = {1e6, 400e3};

	for (guint gamma = 0; gamma < 2; gamma++) {
		double share[16], low = 100, high = 0;

		run_groups(gamma, step, 2, share);
		for (guint i = 11; i < 16; i++) {
			low = fmin(low, share[i]);
			high = fmax(high, share[i]);
		}
		fail_unless(gamma ? high > 4 * low : high < 1.8 * low, "gamma %u: %f to %f", gamma,
			    low, high);
	}
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

	g_object_set(h->element, "rate", (guint64)1000000, "wave", 48, NULL);
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

/* Closed groups: an IDR picture begins each, also of a new length, and any that is asked for. */
GST_START_TEST(test_closed_groups)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);

	gst_util_set_object_arg(G_OBJECT(h->element), "refresh", "idr");
	g_object_set(h->element, "rate", (guint64)1000000, NULL);
	start(h);
	encode(h, 0, 30, 1000, 80);
	gst_harness_push_upstream_event(
		h, gst_video_event_new_upstream_force_key_unit(GST_CLOCK_TIME_NONE, TRUE, 1));
	encode(h, 30, 36, 1000, 80);
	g_object_set(h->element, "gop", 20, NULL);
	encode(h, 36, 96, 1000, 80);
	fail_unless_equals_int(seen.pictures->len, 96);
	for (guint i = 0; i < 96; i++) {
		gboolean key = i == 30 || (i < 36 ? i % 12 == 0 : (i - 36) % 20 == 0);

		fail_unless_equals_int(nth(&seen, i)->type, key ? 'I' : 'P');
		fail_unless(nth(&seen, i)->wire <= nth(&seen, i)->bound);
	}
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

/* The last picture that comes out of a pipeline; @text: up to its sink. */
static GstSample *last_picture(const char *text)
{
	char *line = g_strdup_printf("%s ! fakesink name=out sync=false", text);
	GstElement *pipeline = gst_parse_launch(line, NULL), *out;
	GstSample *sample = NULL;
	GstMessage *msg;
	GstBus *bus;

	fail_unless(pipeline, "%s", line);
	bus = gst_element_get_bus(pipeline);
	out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	msg = gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE,
					 GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
	fail_unless_equals_int(GST_MESSAGE_TYPE(msg), GST_MESSAGE_EOS);
	gst_message_unref(msg);
	g_object_get(out, "last-sample", &sample, NULL);
	gst_element_set_state(pipeline, GST_STATE_NULL);
	gst_object_unref(out);
	gst_object_unref(bus);
	gst_object_unref(pipeline);
	g_free(line);
	fail_unless(sample);
	return sample;
}

/* The largest difference of a colour's mean over a picture's 7 x 4 fields, of 255. */
static guint worst_colour(GstSample *a, GstSample *b, guint width, guint height)
{
	GstMapInfo m[2];
	guint worst = 0;

	gst_buffer_map(gst_sample_get_buffer(a), &m[0], GST_MAP_READ);
	gst_buffer_map(gst_sample_get_buffer(b), &m[1], GST_MAP_READ);
	fail_unless_equals_int(m[0].size, m[1].size);
	for (guint field = 0; field < 28 * 3; field++) {
		/* the middle of a field, away from edges */
		guint x = (2 * (field / 3 % 7) + 1) * width / 14, c = field % 3;
		guint y = (2 * (field / 21) + 1) * height / 8, sum[2] = {0};

		for (guint k = 0; k < 64; k++)
			for (guint i = 0; i < 2; i++)
				sum[i] += m[i].data[((y + k / 8) * width + x + k % 8) * 3 + c];
		worst = MAX(worst, (guint)ABS((int)sum[0] - (int)sum[1]) / 64);
	}
	gst_buffer_unmap(gst_sample_get_buffer(a), &m[0]);
	gst_buffer_unmap(gst_sample_get_buffer(b), &m[1]);
	return worst;
}

/* Whoever decodes the stream sees the colours and the shape that its pictures had. */
GST_START_TEST(test_colours)
{
	static const struct {
		const char *colours, *shape;
		guint width, height;
	} cases[] = {
		/* range : matrix : transfer : primaries, as GStreamer numbers them */
		{"bt601", "1/1", 448, 256},
		{"bt709", "1/1", 448, 256},
		{"bt601", "16/11", 448, 256},
		{"bt709", "12/11", 448, 640}, /* decoders guess by the height */
		{"bt601", "1/1", 448, 640},
		{"1:4:7:1", "1/1", 448, 256}, /* as out of JPEG: the full range */
		{"1:3:5:1", "4/3", 448, 256}, /* full range, BT.709 */
		{"bt2020", "1/1", 448, 256},
	};

	for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
		char *raw = g_strdup_printf("videotestsrc num-buffers=4 pattern=smpte ! "
					    "video/x-raw,format=RGB,width=%u,height=%u,"
					    "framerate=24/1,pixel-aspect-ratio=%s",
					    cases[i].width, cases[i].height, cases[i].shape);
		char *text =
			g_strdup_printf("%s ! videoconvert ! video/x-raw,format=I420,"
					"colorimetry=%s ! paqmh264enc rate=20000000 qp-max=10 "
					"! rtph264pay ! rtph264depay ! avdec_h264 ! videoconvert ! "
					"video/x-raw,format=RGB",
					raw, cases[i].colours);
		GstSample *was = last_picture(raw), *is = last_picture(text);
		GstVideoInfo info;
		guint worst;

		fail_unless(gst_video_info_from_caps(&info, gst_sample_get_caps(is)));
		worst = worst_colour(was, is, cases[i].width, cases[i].height);
		fail_unless(worst <= 10, "%s at %u lines: a colour is wrong by %u of 255",
			    cases[i].colours, cases[i].height, worst);
		g_free(raw);
		raw = g_strdup_printf("%d/%d", GST_VIDEO_INFO_PAR_N(&info),
				      GST_VIDEO_INFO_PAR_D(&info));
		fail_unless_equals_string(raw, cases[i].shape);
		gst_sample_unref(was);
		gst_sample_unref(is);
		g_free(text);
		g_free(raw);
	}
}
GST_END_TEST;

/* What the caps offer, libx264 takes. */
GST_START_TEST(test_sizes)
{
	GstElement *enc = gst_element_factory_make("paqmh264enc", NULL);
	GstPad *pad = gst_element_get_static_pad(enc, "sink");
	GstCaps *offered = gst_pad_query_caps(pad, NULL);

	for (int odd = 0; odd < 4; odd++) {
		int width = 64 + (odd & 1), height = 48 + odd / 2;
		GstCaps *caps = gst_caps_new_simple(
			"video/x-raw", "format", G_TYPE_STRING, "I420", "width", G_TYPE_INT, width,
			"height", G_TYPE_INT, height, "framerate", GST_TYPE_FRACTION, 24, 1, NULL);

		fail_unless_equals_int(gst_caps_can_intersect(caps, offered), !odd);
		gst_caps_unref(caps);
	}
	gst_caps_unref(offered);
	gst_object_unref(pad);
	gst_object_unref(enc);
}
GST_END_TEST;

/* Pictures may lie in memory as whoever makes them likes: planes are asked for, not assumed. */
GST_START_TEST(test_planes)
{
	struct seen seen;
	GstHarness *h = new_encoder(&seen);
	GstCaps *caps = gst_caps_from_string(PICTURE_CAPS);
	GstQuery *query = gst_query_new_allocation(caps, TRUE);

	start(h);
	fail_unless(gst_pad_peer_query(h->srcpad, query));
	fail_unless(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL));
	gst_query_unref(query);
	gst_caps_unref(caps);
	finish(h, &seen);
}
GST_END_TEST;

struct cut {
	GstElement *pay;
	struct encoded last;
};

static void on_cut(GstElement *enc, const GstStructure *p, gpointer data)
{
	struct cut *cut = data;

	(void)enc;
	cut->last = encoded_read(p);
	encoded_cut(&cut->last, cut->pay, CUT_HEADERS);
}

/* Packets become shorter and longer; each picture is cut as it was planned. */
GST_START_TEST(test_packet)
{
	GstHarness *h = gst_harness_new_parse("paqmh264enc rate=2000000 headers=" G_STRINGIFY(
		CUT_HEADERS) " ! rtph264pay "
			     "config-interval=0 aggregate-mode=none");
	GstElement *enc = gst_harness_find_element(h, "paqmh264enc");
	struct cut cut = {.pay = gst_harness_find_element(h, "rtph264pay")};

	g_signal_connect(enc, "picture", G_CALLBACK(on_cut), &cut);
	start(h);
	for (guint n = 0; n < 60; n++) {
		guint most = wire_packet(n / 5 % 2, 2e6), wire = 0, packets = 0;
		GstBuffer *packet;

		g_object_set(enc, "packet", most, NULL);
		fail_unless_equals_int(gst_harness_push(h, picture(n, 100, 200)), GST_FLOW_OK);
		fail_unless_equals_int(cut.last.packet, most);
		for (; (packet = gst_harness_try_pull(h)); packets++) {
			guint size = (guint)gst_buffer_get_size(packet) - WIRE_RTP + CUT_HEADERS;

			fail_unless(size <= most, "%u bytes, %u allowed", size, most);
			wire += size;
			gst_buffer_unref(packet);
		}
		fail_unless_equals_int(packets, cut.last.packets);
		fail_unless_equals_int(wire, cut.last.wire);
		fail_unless(packets > 1, "%u packets", packets);
	}
	gst_object_unref(enc);
	gst_object_unref(cut.pay);
	gst_harness_teardown(h);
}
GST_END_TEST;

/* A picture after a coarse one has longer packets. */
GST_START_TEST(test_packet_coarse)
{
	static const gint qp[] = {WIRE_COARSE_QP, WIRE_COARSE_QP + 1, WIRE_COARSE_QP};
	GstHarness *h = gst_harness_new_parse(
		"paqmh264enc mode=gop gop=4 packet=800 "
		"packet-coarse=1200 headers=" G_STRINGIFY(CUT_HEADERS) " ! rtph264pay");
	GstElement *enc = gst_harness_find_element(h, "paqmh264enc");
	struct cut cut = {.pay = gst_harness_find_element(h, "rtph264pay")};
	double last = 0;

	g_signal_connect(enc, "picture", G_CALLBACK(on_cut), &cut);
	for (guint n = 0; n < 4 * G_N_ELEMENTS(qp); n++) {
		if (n % 4 == 0) {
			g_object_set(enc, "qp-min", WIRE_COARSE_QP, "qp-max", qp[n / 4], NULL);
			g_object_set(enc, "qp-min", qp[n / 4], NULL);
		}
		if (!n)
			start(h);
		fail_unless_equals_int(gst_harness_push(h, picture(n, 100, 200)), GST_FLOW_OK);
		fail_unless_equals_int(cut.last.packet, last > WIRE_COARSE_QP ? 1200 : 800);
		last = cut.last.qp;
		fail_unless(fabs(last - qp[n / 4]) < 1e-3, "picture %u: %f", n, last);
	}
	gst_object_unref(enc);
	gst_object_unref(cut.pay);
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
	tcase_add_test(tc, test_exact_quantizer);
	tcase_add_test(tc, test_commanded_quantizer);
	tcase_add_test(tc, test_group_step);
	tcase_add_test(tc, test_steep_content);
	tcase_add_test(tc, test_frame_bound);
	tcase_add_test(tc, test_key_frame);
	tcase_add_test(tc, test_rate_step);
	tcase_add_test(tc, test_cbr);
	tcase_add_test(tc, test_closed_groups);
	/* GStreamer 1.22's videoconvert alone, from RGB to I420 and back, makes other colours of
	 * them on big-endian machines: yellow comes back as white.
	 */
	if (G_BYTE_ORDER == G_LITTLE_ENDIAN)
		tcase_add_test(tc, test_colours);
	tcase_add_test(tc, test_sizes);
	tcase_add_test(tc, test_planes);
	tcase_add_test(tc, test_packet);
	tcase_add_test(tc, test_packet_coarse);
	return s;
}

GST_CHECK_MAIN(paqm);
