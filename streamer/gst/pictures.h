/* SPDX-License-Identifier: GPL-2.0 */
/* Which packets of the streams that pass a pacer are those of pictures. */
#ifndef PAQM_PICTURES_H
#define PAQM_PICTURES_H

#include <gst/gst.h>

#define PICTURES_GONE (G_USEC_PER_SEC / 2) /* their stream has ended if silent for so long */

/* Of a picture; behind one, in the same stream; of another stream. */
enum kind { PICTURE, BEHIND, AGAIN };

struct pictures {
	gboolean known; /* what pictures are: */
	guint32 ssrc;
	guint8 pt;
	gboolean many; /* one of them had several packets */
	gint64 last;   /* when the last one came, us */
	guint32 other_ssrc, other_ts;
};

/**
 * picture_kind() - what a packet is
 * @head: of RTP
 * @open: packets of a picture wait for its end
 * @open_ts: time stamp of these
 * @now: us
 * @other: set if pictures are those of another stream from this packet on
 *
 * The first stream is that of the pictures, until another has several packets of one time first,
 * or when the first has ended: cameras that are opened anew have another SSRC.
 */
static inline enum kind picture_kind(struct pictures *p, const guint8 *head, gboolean open,
				     guint32 open_ts, gint64 now, gboolean *other)
{
	guint32 ts = GST_READ_UINT32_BE(head + 4), ssrc = GST_READ_UINT32_BE(head + 8);
	guint8 pt = head[1] & 0x7f;

	*other = FALSE;
	if (!p->known) {
		p->known = TRUE;
		p->ssrc = ssrc;
		p->pt = pt;
	}
	if (ssrc != p->ssrc) {
		gboolean again = ssrc == p->other_ssrc && ts == p->other_ts;

		p->other_ssrc = ssrc;
		p->other_ts = ts;
		if ((p->many && now - p->last < PICTURES_GONE) || !again)
			return AGAIN;
		/* What came first was sound, or has ended: this is the stream with pictures. */
		p->ssrc = ssrc;
		p->pt = pt;
		p->last = now;
		*other = TRUE;
		return PICTURE;
	}
	p->last = now;
	p->many |= open && ts == open_ts;
	/* What corrects parts of a picture may come before its end. */
	return pt == p->pt || open ? PICTURE : BEHIND;
}

#endif /* PAQM_PICTURES_H */
