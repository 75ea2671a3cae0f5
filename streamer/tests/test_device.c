// SPDX-License-Identifier: GPL-2.0
/*
 * A device that is not there: what stands in for it is never taken for the device itself. One whose
 * clock is fast gives nothing that is of the future.
 */
#include <gst/check/gsttestclock.h>

#include "core/tests/check.h"
#include "streamer/call/device.h"

#define TIMES 50

static int lost, back, pieces;

static void on_tell(const char *what, enum device_return returns, const char *why, gpointer data)
{
	(void)what;
	(void)returns;
	(void)data;
	g_atomic_int_inc(why ? &lost : &back);
}

/* Elements that choose a device take one named so where there is none (gstautodetect.c). */
TEST(never_there)
{
	GstElement *room = gst_parse_bin_from_description(
		"identity name=joint ! fakesink async=false", FALSE, NULL);
	GstElement *pipeline = gst_pipeline_new(NULL);
	struct device_params p = {
		.what = "microphone",
		.elements = "fakesrc name=fake-audio-src sizetype=fixed filltype=zero",
		.source = TRUE,
		.returns = DEVICE_ASKED,
		.pipeline = pipeline,
		.joint = gst_bin_get_by_name(GST_BIN(room), "joint"),
		.tell = on_tell,
	};
	GstBus *bus = gst_element_get_bus(pipeline);
	struct device *d = device_new(&p, NULL);
	GstMessage *msg;

	gst_object_unref(p.joint);
	gst_bin_add(GST_BIN(pipeline), room);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	device_open(d);
	for (int n = 0; n < TIMES; n++) {
		msg = gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
		CHECK(msg && device_message(d, msg));
		g_clear_pointer(&msg, gst_message_unref);
		if (n < TIMES - 1)
			device_ask(d);
	}
	same("times that it is told lost", g_atomic_int_get(&lost), 1);
	same("times that it is told back", g_atomic_int_get(&back), 0);
	device_stop(d);
	gst_element_set_state(pipeline, GST_STATE_NULL);
	device_free(d);
	gst_object_unref(bus);
	gst_object_unref(pipeline);
}

#define PIECE (10 * GST_MSECOND)

/* Whether what came last would be recorded much later, by its time stamp. */
static GstPadProbeReturn on_piece(GstPad *pad, GstPadProbeInfo *info, gpointer pipeline)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	GstClockTime now = gst_element_get_current_running_time(pipeline);

	(void)pad;
	CHECK(GST_BUFFER_PTS(buf) + GST_BUFFER_DURATION(buf) <= now + 20 * GST_MSECOND);
	g_atomic_int_inc(&pieces);
	return GST_PAD_PROBE_OK;
}

/* Its own time is ahead by a fiftieth: two pieces in a second. */
TEST(fast_card)
{
	GstElement *room = gst_parse_bin_from_description(
		"identity name=joint ! fakesink async=false sync=false", FALSE, NULL);
	GstElement *pipeline = gst_pipeline_new(NULL), *card;
	GstClock *clock = gst_test_clock_new();
	struct device_params p = {
		.what = "microphone",
		.elements = "identity name=card",
		.source = TRUE,
		.counts = TRUE,
		.pipeline = pipeline,
		.joint = gst_bin_get_by_name(GST_BIN(room), "joint"),
		.tell = on_tell,
	};
	struct device *d = device_new(&p, NULL);
	GstSegment segment;
	GstPad *in;

	gst_pipeline_use_clock(GST_PIPELINE(pipeline), clock);
	in = gst_element_get_static_pad(p.joint, "sink");
	gst_pad_add_probe(in, GST_PAD_PROBE_TYPE_BUFFER, on_piece, pipeline, NULL);
	gst_object_unref(in);
	gst_object_unref(p.joint);
	gst_bin_add(GST_BIN(pipeline), room);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	device_open(d);
	card = gst_bin_get_by_name(GST_BIN(device_elements(d)), "card");
	in = gst_element_get_static_pad(card, "sink");
	gst_segment_init(&segment, GST_FORMAT_TIME);
	gst_pad_send_event(in, gst_event_new_stream_start("card"));
	gst_pad_send_event(in, gst_event_new_segment(&segment));
	for (guint64 n = 0; n < 500; n++) {
		GstBuffer *buf = gst_buffer_new_allocate(NULL, 960, NULL);

		gst_test_clock_set_time(GST_TEST_CLOCK(clock),
					GST_SECOND + (n + 1) * PIECE * 50 / 51);
		GST_BUFFER_PTS(buf) = GST_SECOND + n * PIECE;
		GST_BUFFER_DURATION(buf) = PIECE;
		gst_pad_chain(in, buf);
	}
	same("pieces", g_atomic_int_get(&pieces), 500);
	gst_object_unref(in);
	gst_object_unref(card);
	device_stop(d);
	gst_element_set_state(pipeline, GST_STATE_NULL);
	device_free(d);
	gst_object_unref(clock);
	gst_object_unref(pipeline);
}

/* It can be linked before it is known what it takes. */
static void take_nothing(GstElement *elements, gpointer data)
{
	GstElement *card = gst_bin_get_by_name(GST_BIN(elements), "card");
	GstCaps *none = gst_caps_new_empty();

	(void)data;
	if (card)
		g_object_set(card, "caps", none, NULL);
	gst_clear_object(&card);
	gst_caps_unref(none);
}

/*
 * A loudspeaker that takes nothing of any kind, as one of a sound server whose last one has gone:
 * it is lost, and who plays goes on.
 */
TEST(takes_nothing)
{
	GstElement *pipeline = gst_pipeline_new(NULL), *room, *first;
	GstBus *bus = gst_element_get_bus(pipeline);
	struct device_params p = {
		.what = "loudspeaker",
		.elements = "audioconvert ! capsfilter name=card ! fakesink async=false",
		.made = take_nothing,
		.returns = DEVICE_ASKED,
		.pipeline = pipeline,
		.tell = on_tell,
	};
	struct device *d;
	GstSegment segment;
	GstMessage *msg;
	GstPad *in;

	lost = back = 0;
	room = gst_parse_bin_from_description("audioconvert name=first ! audio/x-raw,rate=48000 ! "
					      "identity name=joint",
					      FALSE, NULL);
	p.joint = gst_bin_get_by_name(GST_BIN(room), "joint");
	gst_object_unref(p.joint);
	gst_bin_add(GST_BIN(pipeline), room);
	d = device_new(&p, NULL);
	gst_element_set_state(pipeline, GST_STATE_PLAYING);
	first = gst_bin_get_by_name(GST_BIN(room), "first");
	in = gst_element_get_static_pad(first, "sink");
	gst_segment_init(&segment, GST_FORMAT_TIME);
	for (int n = 0; n < 4; n++) {
		if (n == 3)
			device_replace(d, "fakesink async=false");
		device_open(d);
		if (!n) {
			GstCaps *caps = gst_caps_from_string(
				"audio/x-raw,format=S16LE,rate=48000,channels=1,"
				"layout=interleaved");

			gst_pad_send_event(in, gst_event_new_stream_start("decoded"));
			gst_pad_send_event(in, gst_event_new_caps(caps));
			gst_pad_send_event(in, gst_event_new_segment(&segment));
			gst_caps_unref(caps);
		}
		for (int k = 0; k < 3; k++)
			same("flow", gst_pad_chain(in, gst_buffer_new_allocate(NULL, 1920, NULL)),
			     GST_FLOW_OK);
		msg = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
		CHECK(n == 3 ? !msg : msg && device_message(d, msg));
		g_clear_pointer(&msg, gst_message_unref);
		while ((msg = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)))
			gst_message_unref(msg);
	}
	same("times that it is told lost", g_atomic_int_get(&lost), 1);
	same("times that it is told back", g_atomic_int_get(&back), 1);
	device_stop(d);
	gst_element_set_state(pipeline, GST_STATE_NULL);
	device_free(d);
	gst_object_unref(in);
	gst_object_unref(first);
	gst_object_unref(bus);
	gst_object_unref(pipeline);
}

int main(int argc, char **argv)
{
	gst_init(&argc, &argv);
	return check_run();
}
