/* SPDX-License-Identifier: GPL-2.0 */
/*
 * H.264 over RTP (RFC 6184, packetization mode 1): cuts an access unit into
 * payloads and puts payloads together again. Pure functions without buffers of
 * their own; the joiner reads what strangers send and trusts nothing in it.
 */
#ifndef PAQM_RTPH264_H
#define PAQM_RTPH264_H

#include <glib.h>
#include <stdint.h>

/* One RTP payload: at most two bytes of FU header, then a part of a NAL unit. */
struct h264_piece {
	uint8_t head[2];
	uint8_t head_len;
	const uint8_t *data;
	gsize len;
};

static inline gsize h264_piece_size(const struct h264_piece *p)
{
	return p->head_len + p->len;
}

void h264_cut(const uint8_t *au, gsize len, gsize payload_max, GArray *pieces);

enum h264_join {
	H264_JOIN_MORE,	    /* the access unit goes on */
	H264_JOIN_COMPLETE, /* unit->data is a whole access unit, each NAL unit behind 00 00 00 01
			     */
	H264_JOIN_BROKEN,   /* it ended, and a part of it is missing */
};

/* An access unit under way. */
struct h264_unit {
	GByteArray *data;
	gboolean fragment; /* of a NAL unit that is not at its end */
	gboolean broken;   /* a packet of this unit was lost or made no sense */
	gboolean begun;	   /* a packet has been seen */
	gboolean done;	   /* the last packet ended a unit */
	guint16 seq;	   /* of the newest packet */
	guint32 ts;
};

void h264_unit_init(struct h264_unit *u);
void h264_unit_clear(struct h264_unit *u);
/* A packet without payload. */
void h264_unit_pass(struct h264_unit *u, guint16 seq);
enum h264_join h264_unit_add(struct h264_unit *u, guint16 seq, guint32 ts, gboolean marker,
			     const uint8_t *payload, gsize len);

#endif /* PAQM_RTPH264_H */
