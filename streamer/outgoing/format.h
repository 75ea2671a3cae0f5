/* SPDX-License-Identifier: GPL-2.0 */
/* Pictures in the format that a controller asks for (control.c: ctl_format()): size and pace. */
#ifndef PAQM_STREAMER_FORMAT_H
#define PAQM_STREAMER_FORMAT_H

#include <gst/gst.h>

#include "streamer/control/control.h"

/**
 * format_elements() - what stands before an encoder
 * @kind: of controller
 *
 * Return: elements for gst_parse_launch(), each with its " ! "; "" if pictures stay as they are.
 */
const char *format_elements(const struct ctl_kind *kind);
/**
 * format_use() - these pictures from now on; the encoder begins anew with another size
 * @source_fps: no more than the source has
 */
void format_use(GstBin *pipeline, const struct ctl_format *f, double source_fps);

#endif /* PAQM_STREAMER_FORMAT_H */
