/* SPDX-License-Identifier: GPL-2.0 */
/* Which packets of the streams that pass a pacer are those of pictures. */
#ifndef PAQM_PICTURES_H
#define PAQM_PICTURES_H

#include <gst/gst.h>

/* Of a picture; behind one, in the same stream; of another stream. */
enum kind { PICTURE, BEHIND, AGAIN };

struct pictures {
	gboolean known; /* what pictures are: */
	guint32 ssrc;
	guint8 pt;
	gboolean many; /* one of them had several packets */
	guint32 other_ssrc, other_ts;
};

/**
 * picture_kind() - what a packet is
 * @head: of RTP
 * @open: packets of a picture wait for its end
 * @open_ts: time stamp of these
 * @other: set if pictures are those of another stream from this packet on
 *
 * The first stream is that of the pictures, until another has several packets of one time first.
 */
static inline enum kind picture_kind(struct pictures *p, const guint8 *head, gboolean open,
				     guint32 open_ts, gboolean *other)
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
		if (p->many || !again)
			return AGAIN;
		/* What came first was sound: this is the stream with pictures. */
		p->ssrc = ssrc;
		p->pt = pt;
		*other = TRUE;
		return PICTURE;
	}
	p->many |= open && ts == open_ts;
	/* What corrects parts of a picture may come before its end. */
	return pt == p->pt || open ? PICTURE : BEHIND;
}

#endif /* PAQM_PICTURES_H */
