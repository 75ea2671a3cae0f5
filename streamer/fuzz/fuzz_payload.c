// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: what may go to a depayloader. The input is the payload of a packet. What goes to
 * that of BMP files has no event and no caps of anything else; H.264 of type 0, 25 to 27 or 29 to
 * 31 never goes.
 */
#include <stdlib.h>
#include <string.h>

#include "streamer/encoder/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (payload_expects(CODEC_BMP_PT, data, size)) {
		must(size >= BMP_HEADER && !data[1]);
		must(!bmp_has_caps(data) || memmem(data, size, BMP_CAPS, strlen(BMP_CAPS)));
	}
	if (payload_is_media(CODEC_BMP_PT, data, size))
		must(payload_expects(CODEC_BMP_PT, data, size) && !bmp_has_caps(data));
	if (payload_expects(CODEC_H264_PT, data, size)) {
		must(size > 0);
		must((data[0] & 31) && ((data[0] & 31) < 25 || (data[0] & 31) == 28));
	}
	return 0;
}
