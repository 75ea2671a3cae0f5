// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: the joiner of access units. The input is a row of packets, each
 * with a byte of flags and sequence steps and a length in front. Then what
 * came out is cut and joined again, and must come out the same.
 */
#include <stdlib.h>
#include <string.h>

#include "streamer/trace/rtph264.h"

#define PAYLOAD 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const GByteArray *unit)
{
	GArray *pieces = g_array_new(FALSE, FALSE, sizeof(struct h264_piece));
	struct h264_unit second;
	uint8_t payload[PAYLOAD];

	h264_unit_init(&second);
	h264_cut(unit->data, unit->len, PAYLOAD, pieces);
	for (guint i = 0; i < pieces->len; i++) {
		const struct h264_piece *p = &g_array_index(pieces, struct h264_piece, i);

		if (p->head_len + p->len > PAYLOAD || !p->len)
			abort();
		memcpy(payload, p->head, p->head_len);
		memcpy(payload + p->head_len, p->data, p->len);
		h264_unit_add(&second, (guint16)i, 0, i + 1 == pieces->len, payload,
			      p->head_len + p->len);
	}
	h264_unit_clear(&second);
	g_array_free(pieces, TRUE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct h264_unit unit;
	guint16 seq = 0;
	guint32 ts = 0;

	h264_unit_init(&unit);
	while (size >= 2) {
		gsize len = data[1];
		uint8_t *payload;

		seq = (guint16)(seq + (data[0] & 7) - 1);
		ts += data[0] & 8 ? 3000 : 0;
		len = len > size - 2 ? size - 2 : len;
		/* exactly as long, so that a sanitizer sees overruns */
		payload = malloc(len ? len : 1);
		if (!payload)
			abort();
		memcpy(payload, data + 2, len);
		if (h264_unit_add(&unit, seq, ts, data[0] & 16, payload, len) == H264_JOIN_COMPLETE)
			again(unit.data);
		free(payload);
		data += 2 + len;
		size -= 2 + len;
	}
	h264_unit_clear(&unit);
	return 0;
}
