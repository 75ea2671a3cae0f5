/* SPDX-License-Identifier: GPL-2.0 */
/* GStreamer element paqmh264enc: rate-controlled H.264 for paced live media. */
#ifndef GST_PAQM_H264_ENC_H
#define GST_PAQM_H264_ENC_H

#include <gst/video/gstvideoencoder.h>

G_BEGIN_DECLS

#define GST_TYPE_PAQM_H264_ENC gst_paqm_h264_enc_get_type()
G_DECLARE_FINAL_TYPE(GstPaqmH264Enc, gst_paqm_h264_enc, GST, PAQM_H264_ENC, GstVideoEncoder)

gboolean gst_paqm_h264_enc_register(GstPlugin *plugin);

G_END_DECLS

#endif /* GST_PAQM_H264_ENC_H */
