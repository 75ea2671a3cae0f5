// SPDX-License-Identifier: GPL-2.0
/* Rates in the peer's probes; see carriage.h. */
#include "streamer/call/carriage.h"

#include "streamer/media/parts.h"
#include "streamer/options.h"
#include "streamer/rtp/returns.h"

struct carriage {
	GObject *session;
	gulong signal;
	guint32 nonce;
	GMutex lock;
	struct returns returns;
	gboolean due; /* its newest rate is to be returned */
};

/* Network thread. */
static GstPadProbeReturn on_datagram(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct carriage *c = data;
	gboolean probe = FALSE;
	bool is;
	GstMapInfo map;

	(void)pad;
	if (!gst_buffer_map(buf, &map, GST_MAP_READ))
		return GST_PAD_PROBE_OK;
	if (returns_probe_nonce(map.data, map.size) == c->nonce) {
		probe = TRUE;
		g_mutex_lock(&c->lock);
		c->due |=
			returns_see(&c->returns, map.data, map.size, (guint64)monotonic_ns(), &is);
		g_mutex_unlock(&c->lock);
	}
	gst_buffer_unmap(buf, &map);
	return probe ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

/* Thread of RTCP: a report is about to leave. */
static gboolean on_sending(GObject *session, GstBuffer *buf, gboolean early, gpointer data)
{
	guint8 app[RETURNS_MAX];
	struct carriage *c = data;
	guint ssrc = 0;
	gsize len = 0;

	(void)early;
	g_object_get(session, "internal-ssrc", &ssrc, NULL);
	g_mutex_lock(&c->lock);
	if (c->due)
		len = returns_app(app, &c->returns.newest, ssrc);
	c->due = FALSE;
	g_mutex_unlock(&c->lock);
	part_append(buf, app, len);
	return len > 0;
}

struct carriage *carriage_new(GstElement *src, GObject *session, guint32 nonce)
{
	struct carriage *c = g_new0(struct carriage, 1);

	c->nonce = nonce;
	g_mutex_init(&c->lock);
	part_probe(src, "src", on_datagram, c);
	c->session = g_object_ref(session);
	c->signal = g_signal_connect(session, "on-sending-rtcp", G_CALLBACK(on_sending), c);
	return c;
}

void carriage_free(struct carriage *c)
{
	if (!c)
		return;
	g_signal_handler_disconnect(c->session, c->signal);
	g_object_unref(c->session);
	g_mutex_clear(&c->lock);
	g_free(c);
}
