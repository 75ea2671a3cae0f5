// SPDX-License-Identifier: GPL-2.0
/* Reports to the controller, rates from it. */
#include "streamer/outgoing/rate.h"

#include <gst/rtp/gstrtpbasepayload.h>
#include <gst/rtp/gstrtphdrext.h>
#include <math.h>
#include <string.h>

#include "streamer/rtp/heard.h"
#include "streamer/options.h"
#include "streamer/rtp/reports.h"
#include "streamer/rtp/wire.h"

#define LOG_EVERY_TICKS 2
/* Messages of the peer that wait for the main loop, and what they may say. */
#define MESSAGES 16
#define MESSAGE_MAX 256
/* So long reports that tell the ECN field count, and others do not. */
#define HEARD_RULES_US 3000000

/* Reports on each packet: of rtpsession, or of RFC 8888. */
enum heard_by { HEARD_NONE, HEARD_TWCC, HEARD_CCFB };

struct rate {
	struct ctl *ctl;
	const struct ctl_kind *kind;
	FILE *log;
	rate_fn apply;
	gpointer data;
	guint64 told; /* bit/s */
	gboolean follows;
	guint64 sent;
	guint ticks;
	gint trip_us; /* atomic: round trip, smoothed; 0: not known */

	GMainContext *context;
	GstPad *before;
	gulong probe;
	GObject *session;
	guint headers;
	struct reports *reported; /* by receiver reports */
	gulong messages_heard;
	GstElement *estimator;
	gulong estimates;
	/* reports not yet looked at; the probe's thread may add */
	GMutex lock;
	GPtrArray *reports; /* of struct fates */
	struct message {
		double now;
		struct ctl_message m;
		guint8 data[MESSAGE_MAX];
	} messages[MESSAGES];
	guint n_messages;
	guint64 estimate; /* bit/s; 0: no new one */
	GSource *wake;
	enum heard_by heard_by; /* the last report taken */
	/* thread of RTCP */
	struct heard *heard;
	gint64 heard_us; /* last report of that kind; 0: none */
};

/* What one report says. */
struct fates {
	double now;
	enum heard_by by;
	guint n;
	struct heard_packet p[];
};

static double now_s(void)
{
	return g_get_monotonic_time() / 1e6;
}

static void tell(struct rate *r)
{
	guint64 bps = (guint64)ctl_rate(r->ctl, now_s());
	gboolean follows = ctl_follows(r->ctl);

	if (bps == r->told && follows == r->follows)
		return;
	r->told = bps;
	r->follows = follows;
	r->apply(bps, follows, r->data);
}

struct rate *rate_new(const struct ctl_kind *kind, const struct ctl_params *p, FILE *log,
		      rate_fn apply, gpointer data)
{
	struct rate *r = g_new0(struct rate, 1);

	r->ctl = ctl_new(kind, p, now_s());
	if (!r->ctl)
		g_error("out of memory");
	r->kind = kind;
	r->log = log;
	r->apply = apply;
	r->data = data;
	r->context = g_main_context_ref_thread_default();
	g_mutex_init(&r->lock);
	r->reports = g_ptr_array_new_with_free_func(g_free);
	tell(r);
	return r;
}

/* Main loop: what the probes have left. */
static gboolean take(gpointer data)
{
	struct rate *r = data;
	static struct fb_packet pkts[FB_REPORT];
	struct message messages[MESSAGES];
	guint n_messages;
	GPtrArray *reports;
	guint64 estimate;

	g_mutex_lock(&r->lock);
	g_clear_pointer(&r->wake, g_source_unref);
	reports = r->reports;
	r->reports = g_ptr_array_new_with_free_func(g_free);
	estimate = r->estimate;
	r->estimate = 0;
	n_messages = r->n_messages;
	memcpy(messages, r->messages, n_messages * sizeof(*messages));
	r->n_messages = 0;
	g_mutex_unlock(&r->lock);
	for (guint i = 0; i < reports->len; i++) {
		const struct fates *t = g_ptr_array_index(reports, i);
		guint n = MIN(t->n, FB_REPORT);

		/* the times of the two kinds are of different clocks */
		if (r->heard_by != HEARD_NONE && t->by != r->heard_by)
			ctl_moved(r->ctl, t->now);
		r->heard_by = t->by;
		for (guint k = 0; k < n; k++) {
			pkts[k] = t->p[k].pkt;
			pkts[k].seq = ctl_unwrap(r->ctl, t->p[k].seq);
		}
		ctl_feedback(r->ctl, t->now, pkts, n);
	}
	for (guint i = 0; i < n_messages; i++) {
		messages[i].m.data = messages[i].data;
		ctl_message(r->ctl, messages[i].now, &messages[i].m);
	}
	if (estimate)
		ctl_estimate(r->ctl, now_s(), (double)estimate);
	g_ptr_array_unref(reports);
	tell(r);
	return G_SOURCE_REMOVE;
}

/* With the lock held. */
static void wake(struct rate *r)
{
	if (r->wake)
		return;
	r->wake = g_idle_source_new();
	g_source_set_priority(r->wake, G_PRIORITY_HIGH);
	g_source_set_callback(r->wake, take, r, NULL);
	g_source_attach(r->wake, r->context);
}

static void hand_over(struct rate *r, struct fates *t)
{
	g_mutex_lock(&r->lock);
	g_ptr_array_add(r->reports, t);
	wake(r);
	g_mutex_unlock(&r->lock);
}

/* Streaming thread of RTCP: rtpsession tells the fate of packets in an event. */
static GstPadProbeReturn on_event(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	const GstStructure *s = gst_event_get_structure(GST_PAD_PROBE_INFO_EVENT(info));
	struct rate *r = data;
	const GValue *list;
	struct fates *t;
	guint n;

	(void)pad;
	if (!s || !gst_structure_has_name(s, "RTPTWCCPackets") ||
	    (r->heard_us && g_get_monotonic_time() - r->heard_us < HEARD_RULES_US))
		return GST_PAD_PROBE_OK;
	list = gst_structure_get_value(s, "packets");
	if (!list)
		return GST_PAD_PROBE_OK;
	G_GNUC_BEGIN_IGNORE_DEPRECATIONS
	GValueArray *packets = g_value_get_boxed(list);

	n = packets ? MIN(packets->n_values, FB_REPORT) : 0;
	t = g_malloc0(sizeof(*t) + n * sizeof(t->p[0]));
	t->now = now_s();
	t->by = HEARD_TWCC;
	for (guint i = 0; i < n; i++) {
		const GstStructure *p = g_value_get_boxed(g_value_array_get_nth(packets, i));
		guint64 local = GST_CLOCK_TIME_NONE, remote = GST_CLOCK_TIME_NONE;
		gboolean lost = TRUE;
		guint seq, size = 0;

		/* A packet that we do not remember is none of ours, or long gone. */
		if (!gst_structure_get_uint(p, "seqnum", &seq) ||
		    !gst_structure_get_uint64(p, "local-ts", &local) ||
		    !GST_CLOCK_TIME_IS_VALID(local))
			continue;
		gst_structure_get_uint64(p, "remote-ts", &remote);
		gst_structure_get_boolean(p, "lost", &lost);
		gst_structure_get_uint(p, "size", &size);
		t->p[t->n].seq = (guint16)seq;
		t->p[t->n++].pkt = (struct fb_packet){
			.sent = local / 1e9,
			.recv = remote / 1e9,
			.size = size + r->headers,
			.received = !lost && GST_CLOCK_TIME_IS_VALID(remote),
		};
	}
	G_GNUC_END_IGNORE_DEPRECATIONS
	hand_over(r, t);
	return GST_PAD_PROBE_OK;
}

static void on_heard(const struct heard_packet *p, guint n, gpointer data)
{
	struct fates *t = g_malloc(sizeof(*t) + n * sizeof(t->p[0]));
	struct rate *r = data;

	t->now = now_s();
	t->by = HEARD_CCFB;
	t->n = n;
	memcpy(t->p, p, n * sizeof(t->p[0]));
	r->heard_us = g_get_monotonic_time();
	hand_over(r, t);
}

/* Thread of RTCP: the receiving side of the controller tells something. */
static void on_message(GObject *session, guint subtype, guint ssrc, const char *name,
		       GstBuffer *data, gpointer user)
{
	struct rate *r = user;

	(void)session;
	g_mutex_lock(&r->lock);
	if (data && r->n_messages < MESSAGES) {
		struct message *m = &r->messages[r->n_messages++];

		m->now = now_s();
		m->m = (struct ctl_message){
			.from = ssrc,
			.name = GST_READ_UINT32_BE(name),
			.subtype = subtype,
			.len = gst_buffer_extract(data, 0, m->data, sizeof(m->data))};
		wake(r);
	}
	g_mutex_unlock(&r->lock);
}

/* Any thread. */
static void on_estimate(GObject *element, GParamSpec *pspec, gpointer data)
{
	struct rate *r = data;
	guint bps = 0;

	(void)pspec;
	g_object_get(element, "estimated-bitrate", &bps, NULL);
	g_mutex_lock(&r->lock);
	r->estimate = bps;
	wake(r);
	g_mutex_unlock(&r->lock);
}

void rate_watch(struct rate *r, GstPad *before, GObject *session, guint32 ssrc, guint headers,
		GstElement *estimator)
{
	r->before = gst_object_ref(before);
	r->session = g_object_ref(session);
	r->reported = reports_new(session, ssrc);
	r->headers = headers;
	r->probe = gst_pad_add_probe(before, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_event, r, NULL);
	if (r->kind->message)
		r->messages_heard =
			g_signal_connect(session, "on-app-rtcp", G_CALLBACK(on_message), r);
	if (estimator) {
		r->estimator = gst_object_ref(estimator);
		r->estimates = g_signal_connect(estimator, "notify::estimated-bitrate",
						G_CALLBACK(on_estimate), r);
	}
}

void rate_hear(struct rate *r, GstPad *after, guint below)
{
	r->heard = heard_new(after, r->session, below, on_heard, r);
}

void rate_advise(struct rate *r, const struct ctl_advice *a)
{
	ctl_advise(r->ctl, now_s(), a);
	tell(r);
}

void rate_moved(struct rate *r)
{
	ctl_moved(r->ctl, now_s());
}

void rate_sent(struct rate *r, guint64 total)
{
	ctl_sent(r->ctl, now_s(), total - r->sent);
	r->sent = total;
}

bool rate_train(struct rate *r, struct ctl_train *t)
{
	return ctl_train(r->ctl, now_s(), t);
}

void rate_format(const struct rate *r, struct ctl_format *f)
{
	ctl_format(r->ctl, f);
}

static void on_report(const struct report_block *b, gpointer data)
{
	struct rate *r = data;
	gint trip = b->rtt > 0 ? (gint)MIN(1e6 * b->rtt, 1e7) : 0;
	gint before = g_atomic_int_get(&r->trip_us);

	if (trip)
		g_atomic_int_set(&r->trip_us, before ? before + (trip - before) / 8 : trip);
	ctl_receiver_report(r->ctl, now_s(), b->fraction_lost, b->rtt > 0 ? b->rtt : NAN);
}

double rate_trip(const struct rate *r)
{
	return g_atomic_int_get(&r->trip_us) / 1e6;
}

static void log_value(const char *controller, const char *key, double value, void *data)
{
	struct rate *r = data;

	fprintf(r->log, "%" G_GINT64_FORMAT ",%s,%s,%.9g\n", realtime_ns(), controller, key, value);
}

const struct ctl_ecn_seen *rate_ecn_seen(const struct rate *r)
{
	return ctl_ecn_seen(r->ctl);
}

const char *rate_ecn_fault(const struct rate *r)
{
	switch (ctl_ecn_seen(r->ctl)->path) {
	case CTL_PATH_BLEACHED:
		return "no report shows an ECN-capable packet";
	case CTL_PATH_STUCK:
		return "every packet comes back marked";
	default:
		return NULL;
	}
}

void rate_tick(struct rate *r)
{
	reports_poll(r->reported, on_report, r);
	tell(r);
	if (r->log && r->ticks++ % LOG_EVERY_TICKS == 0)
		ctl_state(r->ctl, log_value, r);
}

void rate_free(struct rate *r)
{
	if (!r)
		return;
	heard_free(r->heard);
	reports_free(r->reported);
	if (r->before)
		gst_pad_remove_probe(r->before, r->probe);
	if (r->messages_heard)
		g_signal_handler_disconnect(r->session, r->messages_heard);
	if (r->estimator)
		g_signal_handler_disconnect(r->estimator, r->estimates);
	if (r->wake)
		g_source_destroy(r->wake);
	g_clear_pointer(&r->wake, g_source_unref);
	gst_clear_object(&r->before);
	gst_clear_object(&r->estimator);
	g_clear_object(&r->session);
	g_ptr_array_unref(r->reports);
	g_main_context_unref(r->context);
	g_mutex_clear(&r->lock);
	ctl_free(r->ctl);
	g_free(r);
}

gboolean rate_number_packets(GstElement *pay, GError **error)
{
	GstElement *ext = gst_element_factory_make("rtphdrexttwcc", NULL);

	if (!ext) {
		g_set_error(error, USAGE_ERROR, 0,
			    "the GStreamer element rtphdrexttwcc is missing: install "
			    "gstreamer1.0-plugins-good 1.20 or newer");
		return FALSE;
	}
	gst_rtp_header_extension_set_id(GST_RTP_HEADER_EXTENSION(ext), TWCC_ID);
	g_signal_emit_by_name(pay, "add-extension", ext);
	gst_object_unref(ext);
	return TRUE;
}
