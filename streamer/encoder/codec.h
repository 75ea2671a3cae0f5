/* SPDX-License-Identifier: GPL-2.0 */
/* Codings that are carried over RTP: the payload type tells them to the receiver. */
#ifndef PAQM_STREAMER_CODEC_H
#define PAQM_STREAMER_CODEC_H

#include <gst/gst.h>
#include <stdbool.h>
#include <stdint.h>

#include "streamer/encoder/payload.h"

struct codec {
	const char *caps; /* of an encoder's output */
	guint pt;
	const char *name; /* RTP's encoding-name */
	const char *pay, *depay, *decoder;
};

const struct codec *codec_of_payload(guint pt);
/* What comes out of an element of this kind; NULL: none of these. */
const struct codec *codec_of_factory(GstElementFactory *factory);
/* Can it be decoded here? Otherwise @error says what to install. */
gboolean codec_is_known(const struct codec *codec, GError **error);
/* Caps of its RTP packets. */
GstCaps *codec_caps(const struct codec *codec);

#endif /* PAQM_STREAMER_CODEC_H */
