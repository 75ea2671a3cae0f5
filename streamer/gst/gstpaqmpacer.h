/* SPDX-License-Identifier: GPL-2.0 */
/* GStreamer element paqmpacer: spreads the RTP packets of a frame in time. */
#ifndef GST_PAQM_PACER_H
#define GST_PAQM_PACER_H

#include <gst/gst.h>

G_BEGIN_DECLS

/* A frame is spread over so much of an interval at least, to make good a delay. */
#define GST_PAQM_PACER_MIN_SPREAD_PERCENT 70

#define GST_TYPE_PAQM_PACER gst_paqm_pacer_get_type()
G_DECLARE_FINAL_TYPE(GstPaqmPacer, gst_paqm_pacer, GST, PAQM_PACER, GstElement)

gboolean gst_paqm_pacer_register(GstPlugin *plugin);

G_END_DECLS

#endif /* GST_PAQM_PACER_H */
