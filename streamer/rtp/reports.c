// SPDX-License-Identifier: GPL-2.0
/* Receiver reports out of rtpbin's statistics; see reports.h. */
#include "streamer/rtp/reports.h"

static void look(const GstStructure *src, guint32 ssrc, guint64 *seen, report_fn fn, gpointer data)
{
	guint lsr = 0, dlsr = 0, fraction = 0, about = 0, rtt = 0;
	struct report_block b = {0};
	gboolean have = FALSE;
	guint64 id;

	gst_structure_get_boolean(src, "have-rb", &have);
	if (!have || !gst_structure_get_uint(src, "rb-ssrc", &about) || about != ssrc)
		return;
	gst_structure_get_uint(src, "rb-lsr", &lsr);
	gst_structure_get_uint(src, "rb-dlsr", &dlsr);
	gst_structure_get_uint(src, "rb-exthighestseq", &b.highest);
	/* what changes from report to report; never 0 */
	id = ((guint64)lsr << 32) ^ ((guint64)b.highest << 16) ^ dlsr ^ 1;
	if (id == *seen)
		return;
	*seen = id;
	gst_structure_get_uint(src, "rb-fractionlost", &fraction);
	gst_structure_get_uint(src, "rb-round-trip", &rtt);
	gst_structure_get_uint(src, "rb-jitter", &b.jitter);
	gst_structure_get_int(src, "rb-packetslost", &b.lost);
	b.fraction_lost = fraction / 256.0;
	b.rtt = rtt / 65536.0;
	fn(&b, data);
}

void reports_poll(GObject *session, guint32 ssrc, guint64 *seen, report_fn fn, gpointer data)
{
	GstStructure *stats = NULL;
	const GValue *list;

	g_object_get(session, "stats", &stats, NULL);
	list = stats ? gst_structure_get_value(stats, "source-stats") : NULL;
	if (list) {
		G_GNUC_BEGIN_IGNORE_DEPRECATIONS
		GValueArray *sources = g_value_get_boxed(list);

		for (guint i = 0; sources && i < sources->n_values; i++)
			look(g_value_get_boxed(g_value_array_get_nth(sources, i)), ssrc, seen, fn,
			     data);
		G_GNUC_END_IGNORE_DEPRECATIONS
	}
	if (stats)
		gst_structure_free(stats);
}
