// SPDX-License-Identifier: GPL-2.0
/* What the encoder tells of pictures and groups; see encoded.h. */
#include "streamer/encoder/encoded.h"

#include "streamer/rtp/wire.h"

struct encoded encoded_read(const GstStructure *p)
{
	struct encoded e = {0};

	gst_structure_get(p, "pts", G_TYPE_UINT64, &e.pts, "frame", G_TYPE_UINT, &e.frame, "gop",
			  G_TYPE_UINT, &e.gop, "qp-base", G_TYPE_INT, &e.qp_base, "qp",
			  G_TYPE_DOUBLE, &e.qp, "bytes", G_TYPE_UINT, &e.bytes, "wire-bytes",
			  G_TYPE_UINT, &e.wire, "packets", G_TYPE_UINT, &e.packets, "bound-bytes",
			  G_TYPE_DOUBLE, &e.bound, "rate", G_TYPE_DOUBLE, &e.rate, "interval",
			  G_TYPE_DOUBLE, &e.interval, "width", G_TYPE_INT, &e.width, "height",
			  G_TYPE_INT, &e.height, "packet", G_TYPE_UINT, &e.packet, NULL);
	e.type = gst_structure_get_string(p, "type");
	return e;
}

void encoded_cut(const struct encoded *e, GstElement *pay, guint headers)
{
	if (e->packet)
		g_object_set(pay, "mtu", wire_rtp_mtu(e->packet, headers), NULL);
}

void encoded_log(FILE *log, const struct encoded *e, gint64 wall_ns, guint32 rtp_ts, guint index)
{
	if (!log)
		return;
	fprintf(log, "%u,%" G_GINT64_FORMAT ",%u,%u,%u,%s,%d,%.2f,%u,%u,%u,%.0f,%.0f,%d,%d\n",
		e->frame, wall_ns, rtp_ts, index, e->gop, e->type, e->qp_base, e->qp, e->bytes,
		e->wire, e->packets, e->bound, e->rate, e->width, e->height);
}

void encoded_group_log(FILE *log, const GstStructure *g, gint64 wall_ns)
{
	static const char *const columns[] = {"r-eff", "b-eff",	 "X",	   "overflow", "x",  "e1",
					      "e2",    "R-open", "R-temp", "Q-star",   "r-t"};
	int frames = 0, qp = 0;
	double bits = 0;
	guint gop = 0;

	if (!log)
		return;
	gst_structure_get(g, "gop", G_TYPE_UINT, &gop, "frames", G_TYPE_INT, &frames, "qp-base",
			  G_TYPE_INT, &qp, "R", G_TYPE_DOUBLE, &bits, NULL);
	fprintf(log, "%u,%" G_GINT64_FORMAT ",%d,%d,%.0f", gop, wall_ns, frames, qp, bits);
	for (guint i = 0; i < G_N_ELEMENTS(columns); i++) {
		double v = 0;

		gst_structure_get_double(g, columns[i], &v);
		fprintf(log, ",%.8g", v);
	}
	fprintf(log, "\n");
}
