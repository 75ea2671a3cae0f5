/* SPDX-License-Identifier: GPL-2.0 */
/* GStreamer element paqmestimator: the routers' advice where rtpgccbwe stands. */
#ifndef GST_PAQM_ESTIMATOR_H
#define GST_PAQM_ESTIMATOR_H

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_PAQM_ESTIMATOR gst_paqm_estimator_get_type()
G_DECLARE_FINAL_TYPE(GstPaqmEstimator, gst_paqm_estimator, GST, PAQM_ESTIMATOR, GstBin)

gboolean gst_paqm_estimator_register(GstPlugin *plugin);

G_END_DECLS

#endif /* GST_PAQM_ESTIMATOR_H */
