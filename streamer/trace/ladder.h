/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A quality ladder: one clip encoded once per quantizer, in groups of pictures
 * that begin at the same pictures in all of them, as `paqm-trace pre` writes it.
 * Any group of one rung can follow any group of another; the result is what a
 * live encoder would have made of the same quantizers (thesis, Evalvid-RA).
 */
#ifndef PAQM_LADDER_H
#define PAQM_LADDER_H

#include <glib.h>
#include <stdint.h>

#define LADDER_FORMAT 1
#define LADDER_Q_MAX 51
#define LADDER_FRAMES_MAX 1000000

struct ladder_frame {
	guint64 offset; /* in the rung's file */
	guint32 size;	/* bytes; 0: not yet known */
	gboolean key;
};

struct ladder {
	int width, height, fps_n, fps_d;
	guint gop;    /* pictures per group */
	guint frames; /* a whole number of groups */
	int q_min, q_max;
	struct ladder_frame *frame; /* [(q - q_min) * frames + number] */
	GMappedFile *file[LADDER_Q_MAX + 1];
};

gboolean ladder_open(struct ladder *l, const char *dir, GError **error);
void ladder_close(struct ladder *l);
gboolean ladder_read_head(struct ladder *l, const char *text, gsize len, GError **error);
gboolean ladder_read_frames(struct ladder *l, const char *text, gsize len, GError **error);

static inline const struct ladder_frame *ladder_frame(const struct ladder *l, int q, guint number)
{
	return &l->frame[(gsize)(q - l->q_min) * l->frames + number];
}

/* The access unit of a picture. */
static inline const uint8_t *ladder_unit(const struct ladder *l, int q, guint number)
{
	return (const uint8_t *)g_mapped_file_get_contents(l->file[q]) +
	       ladder_frame(l, q, number)->offset;
}

guint64 ladder_group_wire_bits(const struct ladder *l, int q, guint first, guint headers);

#endif /* PAQM_LADDER_H */
