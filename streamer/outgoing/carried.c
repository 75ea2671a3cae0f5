// SPDX-License-Identifier: GPL-2.0
/* Rates that travel with the stream: what goes out for routers to write into, what comes back. */
#include <gst/rtp/gstrtpbuffer.h>
#include <string.h>

#include "streamer/rtp/carry.h"
#include "streamer/options.h"
#include "streamer/outgoing/outgoing.h"

#define FIRST_ANSWER_S 1.0 /* the first picture waits this long for one */
/* Returns of what no router has touched, 100 ms apart: the first may have woken one. */
#define FIRST_UNTOLD 2
#define MORE_ONE_IN 16 /* fields with a supplement, where no router asks */

static double since_first(const struct outgoing *o)
{
	return (monotonic_ns() / 1e9 - o->begin) * 1000 - FIRST_PROBES_MS;
}

/* Main loop: what the receiver has returned. */
static gboolean on_returned(gpointer data)
{
	gpointer *both = data;
	struct outgoing *o = both[0];
	gsize len = 0;
	gconstpointer bytes = g_bytes_get_data(both[1], &len);
	guint64 rate;

	o->returned.used = o->granted;
	o->returned.rtt_us = o->rate ? (guint64)(1e6 * rate_trip(o->rate)) : 0;
	rate = returned_take(&o->returned, bytes, len, (guint64)boottime_ns());

	if (rate && o->rate) {
		follow_advise(o);
		follow_begin(since_first(o), TRUE, o);
		if (o->feedback_csv)
			fprintf(o->feedback_csv,
				"%" G_GINT64_FORMAT ",%04x,%s,1,%" G_GUINT64_FORMAT "\n",
				realtime_ns(), o->returned.newest.field.router,
				o->returned.newest.kind == PAQM_RETURN_PROBE ? "probe" : "in-band",
				o->advised);
	} else if (o->returned.untold >= FIRST_UNTOLD) {
		follow_begin(since_first(o), FALSE, o);
	}
	g_bytes_unref(both[1]);
	g_free(both);
	return G_SOURCE_REMOVE;
}

/* Streaming thread: an RTCP APP packet. */
static void on_app(GObject *session, guint subtype, guint ssrc, const char *name, GstBuffer *data,
		   gpointer user)
{
	gpointer *both;
	GstMapInfo map;

	(void)session;
	(void)ssrc;
	if (subtype != PAQM_APP_SUBTYPE || strncmp(name, "PAQM", 4) || !data ||
	    !gst_buffer_map(data, &map, GST_MAP_READ))
		return;
	both = g_new(gpointer, 2);
	both[0] = user;
	both[1] = g_bytes_new(map.data, map.size);
	gst_buffer_unmap(data, &map);
	g_idle_add(on_returned, both);
}

/* Binary32 of a rate that is not 0. */
static guint32 binary32(guint64 bps)
{
	return paqm_f32_encode(MAX(bps, 1), 0);
}

/*
 * The supplement of the next field; FALSE: it has none. Routers that ask show by their answer, so
 * few fields have one where none has answered of late.
 */
static gboolean supplement(struct outgoing *o, struct paqm_more *more)
{
	guint64 now = (guint64)boottime_ns();
	double trip = o->rate ? rate_trip(o->rate) : 0;

	if (o->fields++ % MORE_ONE_IN && !returned_asked(&o->returned, now))
		return FALSE;
	*more = (struct paqm_more){
		.rtt = (guint16)MIN(trip * 1e6 / PAQM_MORE_RTT_US, G_MAXUINT16),
		.demand = binary32(o->rate_max),
		.used = binary32(o->granted),
	};
	return TRUE;
}

void carried_probe(struct outgoing *o)
{
	guint8 p[PAQM_PROBE_LEN + PAQM_FIELD_LEN];
	gsize len = PAQM_PROBE_LEN;
	struct paqm_more more;

	if (!o->socket) /* by a relay, in whose packets routers find no probe */
		return;
	p[0] = PAQM_PROBE_FIRST;
	paqm_field_encode(p + 1, &o->field);
	paqm_put32(p + 1 + PAQM_FIELD_LEN, ++o->probe_seq);
	if (supplement(o, &more)) {
		paqm_more_encode(p + len, &more);
		len += PAQM_FIELD_LEN;
	}
	/* one that is lost is no harm: the next one says more */
	g_socket_send_to(o->socket, G_SOCKET_ADDRESS(o->dest), (const char *)p, len, NULL, NULL);
}

gboolean carried_first_probes(gpointer outgoing)
{
	struct outgoing *o = outgoing;

	if (monotonic_ns() / 1e9 - o->begin > FIRST_ANSWER_S)
		follow_begin(since_first(o), FALSE, o);
	if (g_atomic_int_get(&o->waiting))
		carried_probe(o);
	return G_SOURCE_CONTINUE;
}

/* The first packet of each picture carries a field. */
static GstBuffer *carry_in(struct outgoing *o, GstBuffer *buf)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	struct paqm_more more;
	guint32 ts;

	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return buf;
	ts = gst_rtp_buffer_get_timestamp(&rtp);
	gst_rtp_buffer_unmap(&rtp);
	if (o->field_any && ts == o->field_ts)
		return buf;
	o->field_any = TRUE;
	o->field_ts = ts;
	return carry_insert(buf, &o->field, supplement(o, &more) ? &more : NULL);
}

static gboolean carry_in_list(GstBuffer **buf, guint i, gpointer data)
{
	(void)i;
	*buf = carry_in(data, *buf);
	return TRUE;
}

/* Streaming thread: what leaves the payloader. */
static GstPadProbeReturn on_payload(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct outgoing *o = data;

	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
		GstBufferList *list =
			gst_buffer_list_make_writable(GST_PAD_PROBE_INFO_BUFFER_LIST(info));

		gst_buffer_list_foreach(list, carry_in_list, o);
		info->data = list;
	} else {
		info->data = carry_in(o, GST_PAD_PROBE_INFO_BUFFER(info));
	}
	return GST_PAD_PROBE_OK;
}

void carried_in(struct outgoing *o, GstElement *pay)
{
	GstPad *pad = gst_element_get_static_pad(pay, "src");

	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
			  on_payload, o, NULL);
	gst_object_unref(pad);
}

void carried_watch(struct outgoing *o, GObject *session)
{
	g_signal_connect(session, "on-app-rtcp", G_CALLBACK(on_app), o);
}
