// SPDX-License-Identifier: GPL-2.0
/* Which of several streams on one port is played; see streams.h. */
#include "streamer/recv/streams.h"

#include <gst/video/video.h>

#include "streamer/options.h"

#define ALIVE_MS 500
#define REPORTS_MS 5000	  /* reports are a second apart, and get lost */
#define COLLIDING 10	  /* packets of another sender; few overtake the last of before */
#define BARREN_PACKETS 30 /* it may be our machine that is slow */

struct stream {
	guint32 ssrc;
	guint pt;
	GstPad *pad;   /* rtpbin's */
	GstPad *inlet; /* the selector's */
	gint64 heard;  /* us: last packet */
	guint64 packets;
	gint64 taken; /* us: since when it is played, or last was; 0: never */
	GSocketAddress *from;
	GSocketAddress *reporter; /* where reports come from; NULL: any */
	gint64 reported;	  /* us: last report */
	GSocketAddress *other;	  /* whose packets are refused */
	GSocketAddress *before;	  /* where it came from before it moved */
	guint refused, let_in;	  /* since it moved */
	gboolean told;
};

struct streams {
	GstElement *selector;
	gboolean proof;
	streams_fn take;
	gpointer data;

	GMutex lock;
	GHashTable *known; /* of struct stream, by SSRC */
	struct stream *now;
	guint64 reports_refused;
	gint64 ticked;	/* us: of the last tick; a look at the clock takes time in the lab */
	guint pictures; /* when it was taken */
	guint64 packets;
};

static void free_stream(gpointer data)
{
	struct stream *st = data;

	gst_object_unref(st->pad);
	gst_object_unref(st->inlet);
	g_clear_object(&st->from);
	g_clear_object(&st->reporter);
	g_clear_object(&st->other);
	g_clear_object(&st->before);
	g_free(st);
}

struct streams *streams_new(GstBin *pipeline, gboolean proof, streams_fn take, gpointer data)
{
	struct streams *s = g_new0(struct streams, 1);

	s->proof = proof;
	s->take = take;
	s->data = data;
	g_mutex_init(&s->lock);
	s->known = g_hash_table_new_full(NULL, NULL, NULL, free_stream);
	s->selector = gst_element_factory_make("input-selector", "streams");
	g_object_set(s->selector, "sync-streams", FALSE, NULL);
	gst_bin_add(pipeline, gst_object_ref(s->selector));
	return s;
}

GstElement *streams_outlet(struct streams *s)
{
	return s->selector;
}

/* With the lock held. */
static void choose(struct streams *s, struct stream *st, guint pictures)
{
	s->now = st;
	s->pictures = pictures;
	s->packets = st->packets;
	st->taken = g_get_monotonic_time();
}

gboolean streams_add(struct streams *s, GstPad *pad, guint32 ssrc, guint pt)
{
	struct stream *st;
	gboolean known, first;

	g_mutex_lock(&s->lock);
	known = g_hash_table_contains(s->known, GUINT_TO_POINTER(ssrc));
	first = !s->now;
	g_mutex_unlock(&s->lock);
	if (known || (first && !s->take(pt, TRUE, s->data)))
		return FALSE;
	st = g_new0(struct stream, 1);
	*st = (struct stream){.ssrc = ssrc,
			      .pt = pt,
			      .pad = gst_object_ref(pad),
			      .inlet = gst_element_request_pad_simple(s->selector, "sink_%u"),
			      .heard = g_get_monotonic_time()};
	if (first)
		g_object_set(s->selector, "active-pad", st->inlet, NULL);
	g_mutex_lock(&s->lock);
	g_hash_table_insert(s->known, GUINT_TO_POINTER(ssrc), st);
	if (first)
		choose(s, st, 0);
	g_mutex_unlock(&s->lock);
	return gst_pad_link(pad, st->inlet) == GST_PAD_LINK_OK;
}

void streams_remove(struct streams *s, guint32 ssrc)
{
	GstPad *inlet = NULL;
	struct stream *st;

	g_mutex_lock(&s->lock);
	st = g_hash_table_lookup(s->known, GUINT_TO_POINTER(ssrc));
	if (st && st != s->now) {
		inlet = gst_object_ref(st->inlet);
		g_hash_table_remove(s->known, GUINT_TO_POINTER(ssrc));
	}
	g_mutex_unlock(&s->lock);
	if (!inlet)
		return;
	gst_element_release_request_pad(s->selector, inlet);
	gst_object_unref(inlet);
}

guint32 streams_played(struct streams *s)
{
	guint32 ssrc;

	g_mutex_lock(&s->lock);
	ssrc = s->now ? s->now->ssrc : 0;
	g_mutex_unlock(&s->lock);
	return ssrc;
}

static gboolean equal(GSocketAddress *a, GSocketAddress *b)
{
	return address_equal(G_INET_SOCKET_ADDRESS(a), G_INET_SOCKET_ADDRESS(b));
}

/**
 * let() - does what comes from @from belong to a stream that came from @owner?
 * @heard: when it last did, us
 * @before: gets what @owner was if it is another from now on
 *
 * Return: FALSE: no, and @owner is still there.
 */
static gboolean let(GSocketAddress **owner, gint64 heard, GSocketAddress *from, gint64 now,
		    guint alive_ms, GSocketAddress **before)
{
	if (!G_IS_INET_SOCKET_ADDRESS(from) || (*owner && equal(*owner, from)))
		return TRUE;
	if (*owner && now - heard <= (gint64)alive_ms * 1000)
		return FALSE;
	*before = *owner;
	*owner = g_object_ref(from);
	return TRUE;
}

/* Without the lock held. */
static void tell_collision(guint32 ssrc, GSocketAddress *owner, GSocketAddress *from)
{
	char *first = g_socket_connectable_to_string(G_SOCKET_CONNECTABLE(owner));
	char *second = g_socket_connectable_to_string(G_SOCKET_CONNECTABLE(from));

	g_printerr("paqm-streamer: SSRC %u comes from %s and also from %s, which is ignored "
		   "while the first sends: give each sender an --ssrc of its own, or none\n",
		   ssrc, first, second);
	g_free(first);
	g_free(second);
}

static void tell_moved(guint32 ssrc, GSocketAddress *from)
{
	char *text = g_socket_connectable_to_string(G_SOCKET_CONNECTABLE(from));

	g_printerr("paqm-streamer: the stream with SSRC %u now comes from %s\n", ssrc, text);
	g_free(text);
}

/* With the lock held. */
static enum streams_whose whose(const struct streams *s, guint32 ssrc)
{
	return !s->now || s->now->ssrc == ssrc ? STREAMS_OURS : STREAMS_OTHER;
}

/*
 * Who was silent for a moment only has its stream back from one that sends less: a packet now and
 * then must not keep it out. Once, or two of them would have it by turns. With the lock held.
 */
static gboolean comes_back(struct stream *st, GSocketAddress *from)
{
	if (!st->before || !equal(st->before, from) || st->refused < COLLIDING ||
	    st->refused <= st->let_in)
		return FALSE;
	g_clear_object(&st->before);
	g_set_object(&st->from, from);
	return TRUE;
}

enum streams_whose streams_heard(struct streams *s, guint32 ssrc, GSocketAddress *from)
{
	GSocketAddress *before = NULL, *other = NULL;
	gboolean moved = FALSE, another = FALSE;
	gint64 now = 0;
	enum streams_whose is;
	struct stream *st;

	g_mutex_lock(&s->lock);
	is = whose(s, ssrc);
	st = g_hash_table_lookup(s->known, GUINT_TO_POINTER(ssrc));
	if (st)
		now = g_get_monotonic_time();
	if (st && s->proof && from)
		g_set_object(&st->from, from);
	if (st && !s->proof && !let(&st->from, st->heard, from, now, ALIVE_MS, &before)) {
		st->refused++;
		g_set_object(&st->other, from);
		moved = comes_back(st, from);
		if (!moved)
			is = STREAMS_REFUSED;
	} else if (st) {
		st->let_in++;
		moved = before != NULL;
		if (moved)
			g_set_object(&st->before, before);
	}
	if (st && is != STREAMS_REFUSED) {
		st->heard = now;
		another = !st->packets++ && is == STREAMS_OTHER;
	}
	if (moved) { /* and so have its reports */
		g_clear_object(&st->reporter);
		st->refused = 0;
		st->let_in = 0;
		is = is == STREAMS_OURS ? STREAMS_MOVED : is;
	}
	/* the first goes on, too */
	if (is != STREAMS_REFUSED && st && st->refused >= COLLIDING && !st->told) {
		st->told = TRUE;
		other = g_object_ref(st->other);
	}
	g_mutex_unlock(&s->lock);
	if (other)
		tell_collision(ssrc, from, other);
	g_clear_object(&other);
	g_clear_object(&before);
	if (is == STREAMS_MOVED)
		tell_moved(ssrc, from);
	if (another)
		g_printerr("paqm-streamer: a second stream arrives on this port, SSRC %u; it plays "
			   "when the first is silent or gives no picture\n",
			   ssrc);
	return is;
}

/*
 * Does a report of a stream come from where its sender may be? That is the host of its packets. One
 * that is somewhere else now sends reports alone until somebody answers them: it is believed when
 * that host has been silent for long, and until it speaks again. With the lock held.
 */
static gboolean may_report(struct stream *st, GSocketAddress *from, gint64 now)
{
	if (!address_same_host(st->from, from))
		return now - st->heard > REPORTS_MS * G_GINT64_CONSTANT(1000);
	if (st->reporter && !address_same_host(st->from, st->reporter))
		g_clear_object(&st->reporter);
	return TRUE;
}

enum streams_whose streams_reported(struct streams *s, guint32 ssrc, GSocketAddress *from)
{
	GSocketAddress *before = NULL;
	enum streams_whose is;
	struct stream *st;

	g_mutex_lock(&s->lock);
	st = g_hash_table_lookup(s->known, GUINT_TO_POINTER(ssrc));
	is = st ? whose(s, ssrc) : STREAMS_OTHER;
	if (st && !s->proof && !st->from) {
		is = STREAMS_OTHER; /* where it is from is seen with its next packet */
	} else if (st && !s->proof) {
		if (may_report(st, from, s->ticked) &&
		    let(&st->reporter, st->reported, from, s->ticked, REPORTS_MS, &before)) {
			st->reported = s->ticked;
		} else {
			is = STREAMS_REFUSED;
			s->reports_refused++;
		}
	}
	g_mutex_unlock(&s->lock);
	g_clear_object(&before);
	return is;
}

guint64 streams_reports_refused(struct streams *s)
{
	guint64 refused;

	g_mutex_lock(&s->lock);
	refused = s->reports_refused;
	g_mutex_unlock(&s->lock);
	return refused;
}

guint32 streams_now(struct streams *s, GSocketAddress **from)
{
	guint32 ssrc = 0;

	*from = NULL;
	g_mutex_lock(&s->lock);
	if (s->now) {
		ssrc = s->now->ssrc;
		*from = s->now->from ? g_object_ref(s->now->from) : NULL;
	}
	g_mutex_unlock(&s->lock);
	return ssrc;
}

/* That has packets now, and was not tried for longest. With the lock held. */
static struct stream *find_another(struct streams *s, gint64 now)
{
	struct stream *st, *best = NULL;
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, s->known);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		st = value;
		if (st != s->now && st->packets && now - st->heard < ALIVE_MS * 1000 &&
		    (!best || st->taken < best->taken))
			best = st;
	}
	return best;
}

/* Nothing moves behind the selector. */
static GstPadProbeReturn on_idle(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct streams *s = data;
	GstStructure *wanted;
	struct stream *st;
	GstEvent *event;

	(void)pad;
	(void)info;
	g_mutex_lock(&s->lock);
	st = s->now;
	g_mutex_unlock(&s->lock);
	if (!s->take(st->pt, FALSE, s->data))
		return GST_PAD_PROBE_REMOVE;
	g_object_set(s->selector, "active-pad", st->inlet, NULL);
	event = gst_video_event_new_upstream_force_key_unit(GST_CLOCK_TIME_NONE, TRUE, 0);
	wanted = gst_event_writable_structure(event);
	gst_structure_set(wanted, "payload", G_TYPE_UINT, st->pt, NULL);
	gst_pad_send_event(st->pad, event);
	return GST_PAD_PROBE_REMOVE;
}

void streams_tick(struct streams *s, guint pictures)
{
	gint64 now = g_get_monotonic_time();
	struct stream *old, *next = NULL;
	gboolean silent = FALSE, barren = FALSE;
	GstPad *pad;

	g_mutex_lock(&s->lock);
	s->ticked = now;
	old = s->now;
	if (old) {
		silent = now - old->heard > STREAMS_SILENT_MS * 1000;
		barren = pictures == s->pictures && now - old->taken > STREAMS_BARREN_MS * 1000 &&
			 old->packets > s->packets + BARREN_PACKETS;
		if (silent || barren)
			next = find_another(s, now);
	}
	if (next) {
		old->taken = now;
		choose(s, next, pictures);
	}
	g_mutex_unlock(&s->lock);
	if (!next)
		return;
	g_printerr("paqm-streamer: the stream with SSRC %u %s; now plays SSRC %u\n", old->ssrc,
		   silent ? "has fallen silent" : "gives no picture", next->ssrc);
	pad = gst_element_get_static_pad(s->selector, "src");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_IDLE, on_idle, s, NULL);
	gst_object_unref(pad);
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	g_hash_table_unref(s->known);
	gst_object_unref(s->selector);
	g_mutex_clear(&s->lock);
	g_free(s);
}
