/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the payload of an RTP packet is, as far as GStreamer's depayloaders cannot be left alone
 * with what strangers send, or a picture's end not be told from its marker: pure functions.
 */
#ifndef PAQM_STREAMER_PAYLOAD_H
#define PAQM_STREAMER_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CODEC_H264_PT 96
#define CODEC_BMP_PT 102 /* BMP files in what rtpgstpay makes of anything */

/*
 * rtpgstpay: C|CV(3)|D|0|0|0, kind, 0(16), offset(32). Kind 0 is data. With C and offset 0 caps
 * come first, behind their length of seven bits a byte.
 */
#define BMP_HEADER 8
#define BMP_CAPS "image/bmp"

static inline bool bmp_has_caps(const uint8_t *p)
{
	return p[0] & 0x80 && !p[4] && !p[5] && !p[6] && !p[7];
}

static inline bool bmp_expects(const uint8_t *p, size_t len)
{
	size_t at = BMP_HEADER;

	if (len < BMP_HEADER || p[1])
		return false;
	if (!bmp_has_caps(p))
		return true;
	while (at < len && at < BMP_HEADER + 4 && p[at] & 0x80)
		at++;
	return len - at >= sizeof(BMP_CAPS) && !memcmp(p + at + 1, BMP_CAPS, strlen(BMP_CAPS));
}

/**
 * payload_expects() - may a packet go to the depayloader?
 *
 * At any other it would give up, or hand on what is no picture.
 */
static inline bool payload_expects(unsigned int pt, const uint8_t *p, size_t len)
{
	unsigned int type = len ? p[0] & 31U : 0;

	switch (pt) {
	case CODEC_H264_PT: /* RFC 6184 section 5.2, mode 1 */
		return (type >= 1 && type <= 24) || type == 28;
	case CODEC_BMP_PT:
		return bmp_expects(p, len);
	default:
		return true;
	}
}

/* Of packets of our own: is it of a picture? rtpgstpay also sends events, and caps alone. */
static inline bool payload_is_media(unsigned int pt, const uint8_t *p, size_t len)
{
	return pt != CODEC_BMP_PT || (len >= BMP_HEADER && !p[1] && !bmp_has_caps(p));
}

#endif /* PAQM_STREAMER_PAYLOAD_H */
