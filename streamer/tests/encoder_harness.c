// SPDX-License-Identifier: GPL-2.0
/* The encoder under GstHarness; see encoder_harness.h. */
#include "streamer/tests/encoder_harness.h"

#include <gst/check/gstcheck.h>

#include "streamer/tests/pictures.h"

static void on_picture(GstElement *enc, const GstStructure *s, gpointer data)
{
	struct seen *seen = data;
	struct picture p = {0};

	(void)enc;
	fail_unless(gst_structure_get(
		s, "qp-base", G_TYPE_INT, &p.qp_base, "qp", G_TYPE_DOUBLE, &p.qp, "bound-bytes",
		G_TYPE_DOUBLE, &p.bound, "rate", G_TYPE_DOUBLE, &p.rate, "wire-bytes", G_TYPE_UINT,
		&p.wire, "bytes", G_TYPE_UINT, &p.bytes, "gop", G_TYPE_UINT, &p.gop, "width",
		G_TYPE_INT, &p.width, "height", G_TYPE_INT, &p.height, "interval", G_TYPE_DOUBLE,
		&p.interval, "pts", G_TYPE_UINT64, &p.pts, NULL));
	p.type = *gst_structure_get_string(s, "type");
	g_array_append_val(seen->pictures, p);
}

static void on_group(GstElement *enc, const GstStructure *s, gpointer data)
{
	(void)enc;
	(void)s;
	((struct seen *)data)->groups++;
}

GstHarness *new_encoder(struct seen *seen)
{
	GstHarness *h = gst_harness_new("paqmh264enc");

	seen->pictures = g_array_new(FALSE, TRUE, sizeof(struct picture));
	seen->groups = 0;
	g_signal_connect(h->element, "picture", G_CALLBACK(on_picture), seen);
	g_signal_connect(h->element, "group", G_CALLBACK(on_group), seen);
	return h;
}

void start(GstHarness *h)
{
	gst_harness_set_src_caps_str(h, PICTURE_CAPS);
}

void encode(GstHarness *h, guint from, guint to, guint cut, guint detail)
{
	for (guint n = from; n < to; n++)
		fail_unless_equals_int(gst_harness_push(h, picture(n, cut, detail)), GST_FLOW_OK);
}

struct picture *nth(struct seen *seen, guint i)
{
	fail_unless(i < seen->pictures->len);
	return &g_array_index(seen->pictures, struct picture, i);
}

void finish(GstHarness *h, struct seen *seen)
{
	gst_harness_teardown(h);
	g_array_unref(seen->pictures);
}
