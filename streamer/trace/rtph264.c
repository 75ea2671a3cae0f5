// SPDX-License-Identifier: GPL-2.0
/* RFC 6184 sections 5.6 (single NAL unit) and 5.8 (FU-A). */
#include "streamer/trace/rtph264.h"

#include <string.h>

#define NAL_TYPE(b) ((b)&0x1f)
#define NAL_SLICE 1
#define NAL_SPS 7
#define NAL_DELIMITER 9
#define NAL_LAST_SINGLE 23
#define NAL_FU_A 28
#define FU_START 0x80
#define FU_END 0x40
#define UNIT_MAX (8u << 20) /* bytes of an access unit */

static const uint8_t start_code[4] = {0, 0, 0, 1};

/* Where the next start code begins, and in *code how long it is; @len if there is none. */
static gsize next_start(const uint8_t *p, gsize from, gsize len, gsize *code)
{
	for (gsize i = from; i + 3 <= len; i++) {
		if (p[i] || p[i + 1])
			continue;
		if (p[i + 2] == 1) {
			*code = 3;
			return i;
		}
		if (i + 4 <= len && !p[i + 2] && p[i + 3] == 1) {
			*code = 4;
			return i;
		}
	}
	*code = 0;
	return len;
}

static void cut_nal(const uint8_t *nal, gsize len, gsize payload_max, GArray *pieces)
{
	gsize part = payload_max - 2, at = 1;

	if (len <= payload_max) {
		struct h264_piece whole = {.data = nal, .len = len};

		g_array_append_val(pieces, whole);
		return;
	}
	while (at < len) {
		struct h264_piece fu = {
			.head_len = 2, .data = nal + at, .len = MIN(part, len - at)};

		fu.head[0] = (nal[0] & 0xe0) | NAL_FU_A;
		fu.head[1] = NAL_TYPE(nal[0]);
		if (at == 1)
			fu.head[1] |= FU_START;
		at += fu.len;
		if (at == len)
			fu.head[1] |= FU_END;
		g_array_append_val(pieces, fu);
	}
}

/**
 * h264_cut() - the RTP payloads of an access unit
 * @au: NAL units in Annex B format
 * @payload_max: bytes of a payload at most, more than 2
 * @pieces: of struct h264_piece, pointing into @au; appended to
 */
void h264_cut(const uint8_t *au, gsize len, gsize payload_max, GArray *pieces)
{
	gsize code, at = next_start(au, 0, len, &code);

	while (at < len) {
		gsize nal = at + code, end = next_start(au, nal, len, &code);

		if (end > nal)
			cut_nal(au + nal, end - nal, payload_max, pieces);
		at = end;
	}
}

void h264_unit_init(struct h264_unit *u)
{
	*u = (struct h264_unit){.data = g_byte_array_new()};
}

void h264_unit_clear(struct h264_unit *u)
{
	g_byte_array_unref(u->data);
	u->data = NULL;
}

static void unit_begin(struct h264_unit *u, guint32 ts)
{
	g_byte_array_set_size(u->data, 0);
	u->fragment = FALSE;
	u->broken = FALSE;
	u->ts = ts;
}

/* False if the payload makes no sense here. */
static gboolean unit_take(struct h264_unit *u, const uint8_t *p, gsize len)
{
	uint8_t nal;

	if (!len || u->data->len + len + sizeof(start_code) > UNIT_MAX)
		return FALSE;
	if (NAL_TYPE(p[0]) >= 1 && NAL_TYPE(p[0]) <= NAL_LAST_SINGLE) {
		if (u->fragment)
			return FALSE;
		g_byte_array_append(u->data, start_code, sizeof(start_code));
		g_byte_array_append(u->data, p, (guint)len);
		return TRUE;
	}
	if (NAL_TYPE(p[0]) != NAL_FU_A || len < 3)
		return FALSE;
	if ((p[1] & FU_START) ? u->fragment || (p[1] & FU_END) : !u->fragment)
		return FALSE;
	if (p[1] & FU_START) {
		nal = (p[0] & 0xe0) | NAL_TYPE(p[1]);
		g_byte_array_append(u->data, start_code, sizeof(start_code));
		g_byte_array_append(u->data, &nal, 1);
	}
	g_byte_array_append(u->data, p + 2, (guint)len - 2);
	u->fragment = !(p[1] & FU_END);
	return TRUE;
}

/*
 * Does this payload begin an access unit of a stream whose pictures are one
 * slice each, parameter sets before every key picture?
 */
static gboolean begins_unit(const uint8_t *p, gsize len)
{
	gsize slice = 1;
	uint8_t type;

	if (len < 3)
		return FALSE;
	type = NAL_TYPE(p[0]);
	if (type == NAL_FU_A) {
		if (!(p[1] & FU_START))
			return FALSE;
		type = NAL_TYPE(p[1]);
		slice = 2;
	}
	/* first_mb_in_slice is ue(v): 0 is a single bit 1 */
	return type == NAL_SPS || type == NAL_DELIMITER || (type == NAL_SLICE && p[slice] & 0x80);
}

void h264_unit_pass(struct h264_unit *u, guint16 seq)
{
	if (u->begun && seq == (guint16)(u->seq + 1))
		u->seq = seq;
}

/**
 * h264_unit_add() - one more packet, in the order of their sequence numbers
 *
 * What comes late or twice is passed over. A gap breaks the unit under way, and
 * the next one unless its beginning is seen.
 */
enum h264_join h264_unit_add(struct h264_unit *u, guint16 seq, guint32 ts, gboolean marker,
			     const uint8_t *payload, gsize len)
{
	gint16 ahead = (gint16)(seq - (guint16)(u->seq + 1));
	gboolean gap = !u->begun || ahead > 0; /* or the stream began earlier */

	if (u->begun && ahead < 0)
		return H264_JOIN_MORE;
	if (!u->begun || u->done || ts != u->ts)
		unit_begin(u, ts); /* what was under way lost its end */
	u->begun = TRUE;
	u->seq = seq;
	u->done = marker;
	if ((gap && (u->data->len || !begins_unit(payload, len))) || !unit_take(u, payload, len))
		u->broken = TRUE;
	if (!marker)
		return H264_JOIN_MORE;
	return u->broken || u->fragment ? H264_JOIN_BROKEN : H264_JOIN_COMPLETE;
}
