// SPDX-License-Identifier: GPL-2.0
/* A device that is not there: what stands in for it is never taken for the device itself. */
#include "core/tests/check.h"
#include "streamer/call/device.h"

#define TIMES 50

static int lost, back;

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

int main(int argc, char **argv)
{
	gst_init(&argc, &argv);
	return check_run();
}
