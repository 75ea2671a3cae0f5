// SPDX-License-Identifier: GPL-2.0
/* The sending side of repair; see repair.h. */
#include "streamer/rtp/repair.h"

#include "streamer/options.h"
#include "streamer/rtp/wire.h"

#define KEEP_MS 1000 /* what is older no receiver waits for */
#define LOG_EVERY_TICKS 4

struct repair {
	struct repair_params p;
	struct repair_budget budget;
	GstElement *pacer;
	GstPad *pad; /* requests come in here */
	gulong probe;
	gboolean begun;
	double then;
	guint64 spent;
	guint64 rate, left; /* as told last */
	guint ticks;
	gint room; /* atomic: bytes that may be sent again until the next tick */
	gint asked, late, refused;

	GMutex lock;
	guint32 came_ms[1 << 16]; /* when the packet of each number did; 0: none has */
	GstPad *before;		  /* they come in here */
	gulong numbers;
};

char *repair_elements(const struct repair_params *p)
{
	GString *s = g_string_new(NULL);

	if (p->fec)
		g_string_append_printf(s, "rtpulpfecenc pt=%d percentage=%u ! ", FEC_PT, p->fec);
	if (p->rtx)
		g_string_append_printf(
			s, "rtprtxsend name=rtx max-size-time=%d max-size-packets=0 ! ", KEEP_MS);
	return g_string_free(s, FALSE);
}

static guint32 now_ms(void)
{
	return MAX((guint32)(g_get_monotonic_time() / 1000), 1);
}

static void note(struct repair *r, GstBuffer *buf)
{
	guint8 head[4];

	if (gst_buffer_extract(buf, 0, head, sizeof(head)) != sizeof(head))
		return;
	g_mutex_lock(&r->lock);
	r->came_ms[GST_READ_UINT16_BE(head + 2)] = now_ms();
	g_mutex_unlock(&r->lock);
}

/* Streaming thread. */
static GstPadProbeReturn on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
		GstBufferList *list = GST_PAD_PROBE_INFO_BUFFER_LIST(info);

		for (guint i = 0; i < gst_buffer_list_length(list); i++)
			note(data, gst_buffer_list_get(list, i));
	} else {
		note(data, GST_PAD_PROBE_INFO_BUFFER(info));
	}
	return GST_PAD_PROBE_OK;
}

/* Of a packet that the element has no more. */
static gboolean is_late(struct repair *r, const GstStructure *request)
{
	guint number = 0;
	guint32 came;

	if (!gst_structure_get_uint(request, "seqnum", &number))
		return FALSE;
	g_mutex_lock(&r->lock);
	came = r->came_ms[number & 0xffff];
	g_mutex_unlock(&r->lock);
	return !came || now_ms() - came > KEEP_MS;
}

/*
 * RTCP's thread: the peer asks for a packet. After an outage it asks for all of it: what is gone
 * takes nothing from the budget. More than the budget bears is not sent again.
 */
static GstPadProbeReturn on_request(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	const GstStructure *s = gst_event_get_structure(GST_PAD_PROBE_INFO_EVENT(info));
	struct repair *r = data;

	(void)pad;
	if (!s || !gst_structure_has_name(s, "GstRTPRetransmissionRequest"))
		return GST_PAD_PROBE_OK;
	g_atomic_int_inc(&r->asked);
	if (is_late(r, s)) {
		g_atomic_int_inc(&r->late);
		return GST_PAD_PROBE_DROP;
	}
	if (g_atomic_int_get(&r->room) > 0) {
		g_atomic_int_add(&r->room, -WIRE_PACKET);
		return GST_PAD_PROBE_OK;
	}
	g_atomic_int_inc(&r->refused);
	return GST_PAD_PROBE_DROP;
}

struct repair *repair_new(GstBin *pipeline, GstElement *pacer, const struct repair_params *p)
{
	struct repair *r = g_new0(struct repair, 1);
	GstElement *rtx = gst_bin_get_by_name(pipeline, "rtx");
	GstStructure *map;
	char *ssrc;

	g_mutex_init(&r->lock);
	r->p = *p;
	r->pacer = gst_object_ref(pacer);
	g_object_set(pacer, "reserve", p->fec, NULL);
	if (!rtx)
		return r;
	map = gst_structure_new("application/x-rtp-pt-map", G_STRINGIFY(VIDEO_PT), G_TYPE_UINT,
				RTX_PT, NULL);
	g_object_set(rtx, "payload-type-map", map, NULL);
	gst_structure_free(map);
	ssrc = g_strdup_printf("%u", p->ssrc);
	map = gst_structure_new("application/x-rtp-ssrc-map", ssrc, G_TYPE_UINT, p->rtx_ssrc, NULL);
	g_object_set(rtx, "ssrc-map", map, NULL);
	gst_structure_free(map);
	g_free(ssrc);
	r->before = gst_element_get_static_pad(rtx, "sink");
	r->numbers = gst_pad_add_probe(r->before,
				       GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
				       on_packet, r, NULL);
	r->pad = gst_element_get_static_pad(rtx, "src");
	r->probe =
		gst_pad_add_probe(r->pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_request, r, NULL);
	gst_object_unref(rtx);
	return r;
}

gboolean repair_tick(struct repair *r, guint64 rate, FILE *log, guint64 *left)
{
	double now = g_get_monotonic_time() / 1e6;
	guint64 spent = 0;
	gboolean worth;

	g_object_get(r->pacer, "repair-bytes", &spent, NULL);
	if (!r->begun) {
		repair_begin(&r->budget, r->p.fec, (double)rate);
		r->begun = TRUE;
	} else {
		repair_spent(&r->budget, (double)rate, (double)(spent - r->spent), now - r->then);
	}
	r->then = now;
	r->spent = spent;
	g_atomic_int_set(&r->room, (gint)repair_room(&r->budget, (double)rate));
	if (log && r->ticks++ % LOG_EVERY_TICKS == 0)
		fprintf(log,
			"%" G_GINT64_FORMAT ",repair,owed,%.0f\n%" G_GINT64_FORMAT
			",repair,bytes,%" G_GUINT64_FORMAT "\n",
			realtime_ns(), r->budget.owed, realtime_ns(), spent);
	*left = (guint64)repair_left(&r->budget, (double)rate);
	worth = rate != r->rate || *left > r->left + r->left / 100 ||
		*left + r->left / 100 < r->left;
	r->rate = rate;
	if (worth)
		r->left = *left;
	return worth;
}

char *repair_summary(struct repair *r)
{
	int asked = g_atomic_int_get(&r->asked), refused = g_atomic_int_get(&r->refused);
	int late = g_atomic_int_get(&r->late);

	return g_strdup_printf(
		"repair took %.0f kB; %d retransmissions requested, %d of them too late, %d of "
		"them refused: beyond what the rate allows",
		r->spent / 1e3, asked, late, refused);
}

void repair_free(struct repair *r)
{
	if (!r)
		return;
	if (r->pad)
		gst_pad_remove_probe(r->pad, r->probe);
	if (r->before)
		gst_pad_remove_probe(r->before, r->numbers);
	gst_clear_object(&r->before);
	gst_clear_object(&r->pad);
	gst_clear_object(&r->pacer);
	g_mutex_clear(&r->lock);
	g_free(r);
}
