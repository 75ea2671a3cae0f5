// SPDX-License-Identifier: GPL-2.0
/* Trace mode: cutting and joining of access units, and what the ladder's reader refuses. */
#include <string.h>

#include "core/tests/check.h"
#include "streamer/options.h"
#include "streamer/trace/ladder.h"
#include "streamer/trace/levels.h"
#include "streamer/trace/rtph264.h"

#define PAYLOAD 100

/* An access unit: parameter sets before a key picture, then one slice of @slice bytes. */
static GByteArray *unit_of(gboolean key, guint slice)
{
	static const guint8 sets[] = {0, 0, 0, 1, 0x67, 1, 2, 3, 0, 0, 0, 1, 0x68, 4};
	static const guint8 start[] = {0, 0, 0, 1};
	GByteArray *au = g_byte_array_new();

	if (key)
		g_byte_array_append(au, sets, sizeof(sets));
	g_byte_array_append(au, start, sizeof(start));
	for (guint i = 0; i < slice; i++) {
		guint8 byte = !i ? (key ? 0x65 : 0x41) : (guint8)(0x80 | i);

		g_byte_array_append(au, &byte, 1);
	}
	return au;
}

struct sent {
	guint16 seq;
	guint32 ts;
	gboolean marker;
	guint8 payload[PAYLOAD];
	gsize len;
	int unit;
};

static GArray *cut_all(GByteArray **units, int count)
{
	GArray *all = g_array_new(FALSE, TRUE, sizeof(struct sent));
	guint16 seq = 65530; /* wraps on the way */

	for (int u = 0; u < count; u++) {
		GArray *pieces = g_array_new(FALSE, FALSE, sizeof(struct h264_piece));

		h264_cut(units[u]->data, units[u]->len, PAYLOAD, pieces);
		for (guint i = 0; i < pieces->len; i++) {
			struct h264_piece *p = &g_array_index(pieces, struct h264_piece, i);
			struct sent s = {.seq = seq++,
					 .ts = (guint32)u * 3750,
					 .marker = i + 1 == pieces->len,
					 .len = p->head_len + p->len,
					 .unit = u};

			check(s.len <= PAYLOAD, "a payload fits", (int)s.len);
			memcpy(s.payload, p->head, p->head_len);
			memcpy(s.payload + p->head_len, p->data, p->len);
			g_array_append_val(all, s);
		}
		g_array_free(pieces, TRUE);
	}
	return all;
}

/* Each level's frames take its printed rate in the long run. */
TEST(test_levels)
{
	for (const struct levels_app *app = levels_apps; app->name; app++)
		for (int level = 0; level < LEVELS; level++) {
			double bits = 0, seconds = 0, most = 0, last = 0;

			for (guint tick = 0; tick < 1200; tick++) {
				guint bytes = levels_frame(app, app->packet, tick, level);

				if (bytes)
					last = seconds;
				bits += 8.0 * bytes;
				seconds += levels_step_ns(app, app->packet, app->rate[level]) / 1e9;
				most = MAX(most, seconds - last);
			}
			check(ABS(bits / seconds / app->rate[level] - 1) < 0.01, app->name, level);
			check(most <= levels_pause(app, app->packet) + 1e-6, "longest pause",
			      level);
			check(levels_at(app, app->rate[level]) == level, "level of a rate", level);
		}
	check(levels_at(levels_find("mm"), 1e9) == 4, "highest", 0);
	check(!levels_find("nothing"), "no such application", 0);
}

#define UNITS 12

/* Each packet in turn lost, and none: exactly the others' units come out, byte for byte. */
TEST(test_round_trip)
{
	GByteArray *units[UNITS];
	GArray *all;

	/* around the limits of a single packet and of the last fragment */
	for (int u = 0; u < UNITS; u++)
		units[u] = unit_of(u % 6 == 0, (guint)(u % 2 ? PAYLOAD - 2 + u / 2 : 98 * u + 2));
	all = cut_all(units, UNITS);
	for (int lost = -1; lost < (int)all->len; lost++) {
		struct h264_unit unit;
		gboolean got[UNITS] = {FALSE};

		h264_unit_init(&unit);
		for (int i = 0; i < (int)all->len; i++) {
			struct sent *s = &g_array_index(all, struct sent, i);

			if (i == lost)
				continue;
			if (h264_unit_add(&unit, s->seq, s->ts, s->marker, s->payload, s->len) !=
			    H264_JOIN_COMPLETE)
				continue;
			got[s->unit] = TRUE;
			check(unit.data->len == units[s->unit]->len &&
				      !memcmp(unit.data->data, units[s->unit]->data,
					      unit.data->len),
			      "a unit comes out as it went in", s->unit);
		}
		for (int u = 0; u < UNITS; u++)
			check(got[u] ==
				      (lost < 0 || g_array_index(all, struct sent, lost).unit != u),
			      "a unit is complete unless it lost a packet", lost);
		h264_unit_clear(&unit);
	}
	g_array_free(all, TRUE);
	for (int u = 0; u < UNITS; u++)
		g_byte_array_unref(units[u]);
}

/* Packets that come twice or late change nothing. */
TEST(test_disorder)
{
	GByteArray *units[3] = {unit_of(TRUE, 300), unit_of(FALSE, 300), unit_of(FALSE, 20)};
	GArray *all = cut_all(units, 3);
	struct h264_unit unit;
	int complete = 0;

	h264_unit_init(&unit);
	for (guint i = 0; i < all->len; i++) {
		struct sent *s = &g_array_index(all, struct sent, i);
		struct sent *first = &g_array_index(all, struct sent, 0);

		complete += h264_unit_add(&unit, s->seq, s->ts, s->marker, s->payload, s->len) ==
			    H264_JOIN_COMPLETE;
		check(h264_unit_add(&unit, s->seq, s->ts, s->marker, s->payload, s->len) ==
			      H264_JOIN_MORE,
		      "a second copy is passed over", i);
		if (i)
			check(h264_unit_add(&unit, first->seq, first->ts, TRUE, first->payload,
					    first->len) == H264_JOIN_MORE,
			      "an old packet is passed over", i);
	}
	check(complete == 3, "all units in spite of copies", complete);
	h264_unit_clear(&unit);
	g_array_free(all, TRUE);
	for (int u = 0; u < 3; u++)
		g_byte_array_unref(units[u]);
}

/* Payloads that are not H.264 in mode 1 break their unit and no other. */
TEST(test_foreign)
{
	static const struct {
		const char *what;
		guint8 payload[4];
		gsize len;
	} cases[] = {
		{"nothing", {0}, 0},
		{"NAL type 0", {0x60, 1}, 2},
		{"STAP-A", {0x78, 0, 1, 9}, 4},
		{"FU-B", {0x7d, 0x81, 0, 0}, 4},
		{"a fragment without beginning", {0x7c, 0x01, 7}, 3},
		{"a fragment that begins and ends", {0x7c, 0xc1, 7}, 3},
		{"an FU header without payload", {0x7c, 0x81}, 2},
	};
	static const guint8 good[] = {0x41, 0x80, 1};

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct h264_unit unit;

		h264_unit_init(&unit);
		check(h264_unit_add(&unit, 1, 100, TRUE, cases[i].payload, cases[i].len) ==
			      H264_JOIN_BROKEN,
		      cases[i].what, i);
		check(h264_unit_add(&unit, 2, 200, TRUE, good, sizeof(good)) == H264_JOIN_COMPLETE,
		      "the unit behind it is whole", i);
		h264_unit_clear(&unit);
	}
}

#define HEAD(frames, gop, q)                                                                       \
	"{\"format\":1,\"codec\":\"h264\",\"width\":64,\"height\":48,\"fps\":[24,1],\"gop\":" gop  \
	",\"frames\":" frames ",\"q_min\":30,\"q_max\":" q "}"
#define COLUMNS "frame,type,pts_us,q,offset,size\n"

static gboolean reads(const char *head, const char *frames, const char *says)
{
	struct ladder l = {0};
	GError *error = NULL;
	gboolean ok = ladder_read_head(&l, head, strlen(head), &error) &&
		      ladder_read_frames(&l, frames, strlen(frames), &error);

	if (says) {
		gboolean named = error && strstr(error->message, says);

		if (error && !named)
			printf("it says: %s\n", error->message);
		ok = !ok && named;
	} else if (ok) {
		ok = ladder_frame(&l, 31, 1)->offset == 40 && ladder_frame(&l, 31, 1)->size == 4 &&
		     ladder_frame(&l, 30, 0)->key && !ladder_frame(&l, 30, 1)->key;
	}
	g_clear_error(&error);
	ladder_close(&l);
	return ok;
}

TEST(test_ladder)
{
	static const struct {
		const char *head, *frames, *says;
	} cases[] = {
		{HEAD("2", "2", "31"),
		 COLUMNS "0,I,0,30,0,9\n1,P,41667,30,9,5\n0,I,0,31,0,40\n1,P,41667,31,40,4\n",
		 NULL},
		{"{", COLUMNS, "ladder.json:1"},
		{"{\"format\":1}", COLUMNS, "codec"},
		{"{\"format\":2,\"codec\":\"h264\",\"width\":64,\"height\":48,\"fps\":[24,1],"
		 "\"gop\":1,\"frames\":1,\"q_min\":30,\"q_max\":31}",
		 COLUMNS, "format 2"},
		{HEAD("3", "2", "31"), COLUMNS, "a multiple"},
		{HEAD("2", "0", "31"), COLUMNS, "gop 1 to 600"},
		{HEAD("2", "2", "52"), COLUMNS, "q_min to q_max"},
		{HEAD("2", "2", "29"), COLUMNS, "q_min to q_max"},
		{HEAD("2000000", "2", "31"), COLUMNS, "up to"},
		{HEAD("2", "2", "31"), "frame,q\n", "expected the columns"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,30,0,9\n", "1 pictures, expected 4"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,30,0,9\n0,I,0,30,0,9\n", "csv:3"},
		{HEAD("2", "2", "31"), COLUMNS "0,P,0,30,0,9\n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "1,I,0,30,0,9\n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "2,I,0,30,0,9\n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,29,0,9\n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,30,0,0\n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,30,0,9999999999\n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,30,18446744073709551616,9\n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,30,0,9", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,0,30,0,9 \n", "csv:2"},
		{HEAD("2", "2", "31"), COLUMNS "0,I,-1,30,0,9\n", "csv:2"},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
		check(reads(cases[i].head, cases[i].frames, cases[i].says), "ladder", i);
}

CHECK_MAIN
