// SPDX-License-Identifier: GPL-2.0
/* The start of a stream; see train.h. */
#include "streamer/rtp/train.h"

#include <gst/gst.h>
#include <string.h>

struct train {
	struct train_params p;
	train_fn over;
	gpointer data;
	guint timer, sent;
	gint64 begin; /* us */
};

static void send_one(struct train *t)
{
	guint8 p[TRAIN_BYTES] = {0x80, VIDEO_PT};
	guint elapsed = (guint)((g_get_monotonic_time() - t->begin) * TRAIN_CLOCK / G_USEC_PER_SEC);

	GST_WRITE_UINT16_BE(p + 2, (guint16)(t->p.first - TRAIN_PACKETS + t->sent));
	GST_WRITE_UINT32_BE(p + 4, t->p.ts + elapsed);
	GST_WRITE_UINT32_BE(p + 8, t->p.ssrc);
	p[12] = TRAIN_NAL;
	memset(p + 13, 0xff, sizeof(p) - 14);
	p[sizeof(p) - 1] = 0x80; /* stop bit */
	/* one that is lost is no harm */
	g_socket_send_to(t->p.socket, t->p.to, (const char *)p, sizeof(p), NULL, NULL);
	t->sent++;
}

static void finish(struct train *t, gboolean told)
{
	/* The numbers have to go on without a hole. */
	while (t->sent < TRAIN_PACKETS)
		send_one(t);
	g_clear_handle_id(&t->timer, g_source_remove);
	if (t->over)
		t->over((double)(g_get_monotonic_time() - t->begin) / 1000, told, t->data);
	t->over = NULL;
}

static gboolean on_gap(gpointer data)
{
	struct train *t = data;

	if (t->sent < TRAIN_PACKETS)
		send_one(t);
	if (g_get_monotonic_time() - t->begin < TRAIN_WAIT_MS * 1000)
		return G_SOURCE_CONTINUE;
	t->timer = 0;
	finish(t, FALSE);
	return G_SOURCE_REMOVE;
}

struct train *train_start(const struct train_params *p, train_fn over, gpointer data)
{
	struct train *t = g_new0(struct train, 1);

	t->p = *p;
	g_object_ref(t->p.socket);
	g_object_ref(t->p.to);
	t->over = over;
	t->data = data;
	t->begin = g_get_monotonic_time();
	send_one(t);
	t->timer = g_timeout_add(TRAIN_GAP_MS, on_gap, t);
	return t;
}

void train_told(struct train *t)
{
	if (t && t->over)
		finish(t, TRUE);
}

void train_free(struct train *t)
{
	if (!t)
		return;
	g_clear_handle_id(&t->timer, g_source_remove);
	g_object_unref(t->p.socket);
	g_object_unref(t->p.to);
	g_free(t);
}

gboolean train_is(const guint8 *packet, gsize len)
{
	return len == TRAIN_BYTES && packet[0] == 0x80 && packet[1] == VIDEO_PT &&
	       packet[12] == TRAIN_NAL;
}
