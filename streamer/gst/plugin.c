// SPDX-License-Identifier: GPL-2.0
/* GStreamer plugin paqm: encoder, pacer and estimator. */
#include "streamer/gst/gstpaqmestimator.h"
#include "streamer/gst/gstpaqmh264enc.h"
#include "streamer/gst/gstpaqmpacer.h"

#define PACKAGE "paqm"

static gboolean plugin_init(GstPlugin *plugin)
{
	return gst_paqm_h264_enc_register(plugin) && gst_paqm_pacer_register(plugin) &&
	       gst_paqm_estimator_register(plugin);
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, paqm,
		  "Rate-controlled live media over P-AQM", plugin_init, PAQM_VERSION, "GPL", "paqm",
		  "Unknown package origin")
