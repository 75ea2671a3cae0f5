// SPDX-License-Identifier: GPL-2.0
/* Reads ladder.json, frames.csv and the rungs; every figure is checked against the others. */
#include "streamer/trace/ladder.h"

#include <jansson.h>
#include <string.h>

#include "streamer/options.h"
#include "streamer/trace/rtph264.h"
#include "streamer/rtp/wire.h"

#define FRAMES_HEADER "frame,type,pts_us,q,offset,size"

static gboolean bad(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean bad(GError **error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (error)
		*error = g_error_new_valist(USAGE_ERROR, 0, format, args);
	va_end(args);
	return FALSE;
}

/**
 * ladder_read_head() - what ladder.json says
 *
 * Sets all fields but the files; makes room for the frames.
 */
gboolean ladder_read_head(struct ladder *l, const char *text, gsize len, GError **error)
{
	json_error_t at;
	json_t *root = json_loadb(text, len, 0, &at);
	int format, gop, frames;
	const char *codec;

	if (!root)
		return bad(error, "ladder.json:%d: %s", at.line, at.text);
	if (json_unpack_ex(root, &at, 0, "{s:i, s:s, s:i, s:i, s:[i,i], s:i, s:i, s:i, s:i}",
			   "format", &format, "codec", &codec, "width", &l->width, "height",
			   &l->height, "fps", &l->fps_n, &l->fps_d, "gop", &gop, "frames", &frames,
			   "q_min", &l->q_min, "q_max", &l->q_max)) {
		json_decref(root);
		return bad(error, "ladder.json: %s", at.text);
	}
	if (format != LADDER_FORMAT || strcmp(codec, "h264")) {
		bad(error,
		    "ladder.json: format %d, codec %.16s: this program reads format %d, codec "
		    "h264; make the ladder again with paqm-trace pre",
		    format, codec, LADDER_FORMAT);
		json_decref(root);
		return FALSE;
	}
	json_decref(root);
	if (l->width < 16 || l->width > 8192 || l->height < 16 || l->height > 8192 ||
	    l->fps_n < 1 || l->fps_d < 1 || l->fps_n / l->fps_d > 240 || l->fps_d > 100000 ||
	    l->fps_n > 10000000 || gop < 1 || gop > 600 || frames < gop ||
	    frames > LADDER_FRAMES_MAX || frames % gop || l->q_min < 0 || l->q_min > l->q_max ||
	    l->q_max > LADDER_Q_MAX)
		return bad(
			error,
			"ladder.json: a figure is out of range: gop 1 to 600, frames a multiple of "
			"it up to %d, q_min to q_max within 0 to %d",
			LADDER_FRAMES_MAX, LADDER_Q_MAX);
	l->gop = (guint)gop;
	l->frames = (guint)frames;
	l->frame = g_try_new0(struct ladder_frame, (gsize)(l->q_max - l->q_min + 1) * l->frames);
	return l->frame ? TRUE : bad(error, "ladder.json: no memory for %u frames", l->frames);
}

/* An unsigned number that ends with @end; moves *p behind it. */
static gboolean number(const char **p, const char *limit, char end, guint64 max, guint64 *out)
{
	guint64 v = 0;
	const char *s = *p;

	if (s == limit || !g_ascii_isdigit(*s))
		return FALSE;
	for (; s < limit && g_ascii_isdigit(*s); s++) {
		guint64 digit = (guint64)(*s - '0');

		if (digit > max || v > (max - digit) / 10)
			return FALSE;
		v = v * 10 + digit;
	}
	if (s == limit || *s != end)
		return FALSE;
	*p = s + 1;
	*out = v;
	return TRUE;
}

static gboolean read_line(struct ladder *l, const char *p, const char *limit)
{
	guint64 n, pts, q, offset, size;
	struct ladder_frame *f;
	gboolean key;

	if (!number(&p, limit, ',', l->frames - 1, &n) || limit - p < 2 ||
	    (*p != 'I' && *p != 'P') || p[1] != ',')
		return FALSE;
	key = *p == 'I';
	p += 2;
	if (!number(&p, limit, ',', G_MAXINT64, &pts) ||
	    !number(&p, limit, ',', (guint64)l->q_max, &q) ||
	    !number(&p, limit, ',', G_MAXINT64 / 2, &offset) ||
	    !number(&p, limit, '\n', G_MAXINT32, &size) || p != limit)
		return FALSE;
	if (q < (guint64)l->q_min || !size || key != (n % l->gop == 0))
		return FALSE;
	f = &l->frame[(gsize)(q - (guint64)l->q_min) * l->frames + n];
	if (f->size)
		return FALSE;
	*f = (struct ladder_frame){offset, (guint32)size, key};
	return TRUE;
}

/**
 * ladder_read_frames() - what frames.csv says
 *
 * Each picture of each rung must be there once, and each group begin with a
 * key picture.
 */
gboolean ladder_read_frames(struct ladder *l, const char *text, gsize len, GError **error)
{
	const char *p = text, *limit = text + len, *end;
	gsize count = (gsize)(l->q_max - l->q_min + 1) * l->frames, line = 1, head;

	head = strlen(FRAMES_HEADER) + 1;
	if (len < head || memcmp(text, FRAMES_HEADER "\n", head))
		return bad(error, "frames.csv:1: expected the columns " FRAMES_HEADER);
	for (p += head; p < limit; p = end) {
		line++;
		end = memchr(p, '\n', (gsize)(limit - p));
		end = end ? end + 1 : limit;
		if (!read_line(l, p, end))
			return bad(
				error,
				"frames.csv:%" G_GSIZE_FORMAT
				": not a picture of this ladder, or there already; make the ladder "
				"again with paqm-trace pre",
				line);
	}
	if (line - 1 != count)
		return bad(error,
			   "frames.csv: %" G_GSIZE_FORMAT " pictures, expected %" G_GSIZE_FORMAT
			   " (%u of %d rungs)",
			   line - 1, count, l->frames, l->q_max - l->q_min + 1);
	return TRUE;
}

static gboolean read_file(struct ladder *l, const char *dir, const char *name,
			  gboolean (*reader)(struct ladder *, const char *, gsize, GError **),
			  GError **error)
{
	char *path = g_build_filename(dir, name, NULL), *text = NULL;
	gsize len = 0;
	gboolean ok;

	ok = g_file_get_contents(path, &text, &len, error);
	if (ok)
		ok = reader(l, text, len, error);
	if (!ok)
		g_prefix_error(error, "ladder %s: ", dir);
	g_free(text);
	g_free(path);
	return ok;
}

/* The rung's file has all that frames.csv says of it. */
static gboolean open_rung(struct ladder *l, const char *dir, int q, GError **error)
{
	char *name = g_strdup_printf("q%02d.h264", q);
	char *path = g_build_filename(dir, name, NULL);
	gsize len;

	g_free(name);
	l->file[q] = g_mapped_file_new(path, FALSE, error);
	if (!l->file[q]) {
		g_free(path);
		return FALSE;
	}
	len = g_mapped_file_get_length(l->file[q]);
	for (guint i = 0; i < l->frames; i++) {
		const struct ladder_frame *f = ladder_frame(l, q, i);

		if (f->offset + f->size > len) {
			bad(error, "%s has %" G_GSIZE_FORMAT " bytes, picture %u is not in it",
			    path, len, i);
			g_free(path);
			return FALSE;
		}
	}
	g_free(path);
	return TRUE;
}

gboolean ladder_open(struct ladder *l, const char *dir, GError **error)
{
	*l = (struct ladder){0};
	if (!read_file(l, dir, "ladder.json", ladder_read_head, error) ||
	    !read_file(l, dir, "frames.csv", ladder_read_frames, error))
		return FALSE;
	for (int q = l->q_min; q <= l->q_max; q++)
		if (!open_rung(l, dir, q, error))
			return FALSE;
	return TRUE;
}

void ladder_close(struct ladder *l)
{
	for (int q = 0; q <= LADDER_Q_MAX; q++)
		g_clear_pointer(&l->file[q], g_mapped_file_unref);
	g_clear_pointer(&l->frame, g_free);
}

/**
 * ladder_group_wire_bits() - what a group costs on the wire, headers included
 * @first: its first picture
 * @headers: bytes around the payload of each packet
 *
 * The exact figure that the a-priori variant of RA-SVBR plans with.
 */
guint64 ladder_group_wire_bits(const struct ladder *l, int q, guint first, guint headers)
{
	GArray *pieces = g_array_new(FALSE, FALSE, sizeof(struct h264_piece));
	guint64 bytes = 0;

	for (guint i = first; i < first + l->gop; i++)
		h264_cut(ladder_unit(l, q, i), ladder_frame(l, q, i)->size, WIRE_PACKET - headers,
			 pieces);
	for (guint i = 0; i < pieces->len; i++) {
		const struct h264_piece *piece = &g_array_index(pieces, struct h264_piece, i);

		bytes += headers + h264_piece_size(piece);
	}
	g_array_free(pieces, TRUE);
	return bytes * 8;
}
