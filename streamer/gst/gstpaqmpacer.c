// SPDX-License-Identifier: GPL-2.0
/**
 * SECTION:element-paqmpacer
 *
 * Spreads the RTP packets of each frame evenly, in proportion to their bytes,
 * over one frame interval, so that a frame is not a burst at the bottleneck.
 * A frame ends with the packet that has the RTP marker bit, or before one with
 * another time stamp: codings without markers are paced too, an interval later.
 * A thread of its own sends, by the pipeline's clock, so the encoder upstream is
 * never held up.
 *
 * The last packet leaves before the next frame is due. When the encoder was
 * late, the next frame is spread over less than an interval, but never less
 * than 0.7 of it, until the delay is made good.
 *
 * #GstPaqmPacer:rate is for encoders that answer late to a new rate, or that keep it only
 * in the mean: what they send beyond it waits here, and not in the network. What waits leaves
 * at the rate, neither faster nor slower, also when that changes, but no frame waits for longer
 * than half a second.
 *
 * Packets of a train (streamer/rtp/probe.h) leave at its gaps.
 * Two kinds of packets belong to no frame. Packets of another payload type in
 * the same stream that come behind the marker (forward error correction) go out
 * in order, in the part of the interval that #GstPaqmPacer:reserve keeps free for
 * them. Packets of another stream (retransmissions, RFC 4588; sound; another
 * picture) go out at once, in between: at the pace of the last frame or, where there
 * is a rate, at what frames leave of it. None waits for longer than half a second.
 */
#include "streamer/gst/gstpaqmpacer.h"

#include <sys/prctl.h>

#include "streamer/gst/due.h"
#include "streamer/gst/pictures.h"
#include "streamer/gst/trainpace.h"

GST_DEBUG_CATEGORY_STATIC(paqmpacer_debug);
#define GST_CAT_DEFAULT paqmpacer_debug

#define DEFAULT_INTERVAL (GST_SECOND / 24)
#define HOLD_MAX 500000 /* us that a frame, or another stream, may wait for those before it */
#define QUEUE_MAX 4096
#define FRAME_MAX 2048 /* packets; a stream that never ends its frames keeps no more */
#define DEFAULT_BELOW 28

struct _GstPaqmPacer {
	GstElement parent;
	GstPad *sink, *src;

	GMutex lock;
	GCond cond;
	GstClock *clock;  /* the pipeline's; the system's as long as there is none */
	GstClockID alarm; /* the sending thread waits for it, or NULL */
	GQueue queue;	  /* of struct item, ready to go */
	GQueue frame;	  /* of GstBuffer, waiting for the marker */
	gint64 busy;	  /* the last frame occupies the link until then */
	gint64 again;	  /* the last packet of another stream, too */
	struct train_pace train;
	double pace; /* of the last frame, us per byte */
	guint32 ts;  /* of the packets in frame */
	struct pictures pictures;
	guint reserve; /* percent */
	guint64 rate;  /* bit/s that frames may take, 0: any */
	guint below;   /* bytes that each packet has beside RTP */
	gboolean flushing;
	GstFlowReturn flow;
	guint64 interval; /* ns */
	guint64 wire_bytes;
	guint64 packets;
	guint64 repair_bytes; /* of these, what was no picture */
	gboolean slack_set;
};

G_DEFINE_TYPE(GstPaqmPacer, gst_paqm_pacer, GST_TYPE_ELEMENT)

enum {
	PROP_0,
	PROP_INTERVAL,
	PROP_RESERVE,
	PROP_BELOW,
	PROP_RATE,
	PROP_WIRE_BYTES,
	PROP_PACKETS,
	PROP_REPAIR_BYTES
};

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
	"sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS("application/x-rtp"));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
	"src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS("application/x-rtp"));

static gint64 now_us(GstPaqmPacer *self)
{
	return (gint64)(gst_clock_get_time(self->clock) / GST_USECOND);
}

/* Something has changed for whoever waits. Called with the lock held. */
static void wake(GstPaqmPacer *self)
{
	if (self->alarm)
		gst_clock_id_unschedule(self->alarm);
	g_cond_broadcast(&self->cond);
}

/* Until then, or until something has changed. Called with the lock held. */
static void wait_until(GstPaqmPacer *self, gint64 due)
{
	GstClockID alarm =
		gst_clock_new_single_shot_id(self->clock, (GstClockTime)due * GST_USECOND);

	self->alarm = alarm;
	g_mutex_unlock(&self->lock);
	gst_clock_id_wait(alarm, NULL);
	g_mutex_lock(&self->lock);
	self->alarm = NULL;
	gst_clock_id_unref(alarm);
}

/* Give every packet of the collected frame its time. Called with the lock held. */
static void schedule_frame(GstPaqmPacer *self)
{
	gint64 interval = (gint64)(self->interval / GST_USECOND) * 100 / (100 + self->reserve);
	gint64 now = now_us(self);
	gint64 start = MAX(now, self->busy);
	gint64 span = CLAMP(now + interval - start,
			    interval * GST_PAQM_PACER_MIN_SPREAD_PERCENT / 100, interval);
	guint64 total = 0, before = 0;
	GstBuffer *buf;

	for (GList *l = self->frame.head; l; l = l->next)
		total += gst_buffer_get_size(l->data) + self->below;
	if (self->rate && start - now < HOLD_MAX)
		span = MAX(now + interval - start,
			   (gint64)gst_util_uint64_scale(total, 8 * G_USEC_PER_SEC, self->rate));
	while ((buf = g_queue_pop_head(&self->frame))) {
		guint64 size = gst_buffer_get_size(buf) + self->below;

		due_insert(&self->queue, GST_MINI_OBJECT_CAST(buf), start + span * before / total);
		before += size;
		self->wire_bytes += size;
		self->packets++;
	}
	self->busy = start + span;
	if (total)
		self->pace = (double)span / total;
	wake(self);
}

/* Give a packet of a train its time; FALSE: it is of none. Called with the lock held. */
static gboolean schedule_train(GstPaqmPacer *self, GstBuffer *buf)
{
	guint64 size = gst_buffer_get_size(buf) + self->below;
	gint64 gap, due = train_due(&self->train, buf, size, MAX(now_us(self), self->busy), &gap);

	if (due < 0)
		return FALSE;
	due_insert(&self->queue, GST_MINI_OBJECT_CAST(buf), due);
	self->busy = MAX(self->busy, due + gap);
	self->wire_bytes += size;
	self->packets++;
	wake(self);
	return TRUE;
}

/* Give a packet outside of the frames its time. Called with the lock held. */
static void schedule_repair(GstPaqmPacer *self, GstBuffer *buf, enum kind kind)
{
	guint64 size = gst_buffer_get_size(buf) + self->below;
	gint64 *busy = kind == BEHIND ? &self->busy : &self->again, now = now_us(self);
	gint64 due = MAX(*busy, now);
	double pace = self->pace;

	if (kind == AGAIN && due - now > HOLD_MAX)
		pace = 0;
	else if (kind == AGAIN && self->rate)
		pace = pace_beside(self->rate, self->busy > now ? pace : 0);
	if (kind == BEHIND)
		due_push(&self->queue, GST_MINI_OBJECT_CAST(buf), due);
	else
		due_insert(&self->queue, GST_MINI_OBJECT_CAST(buf), due);
	*busy = due + (gint64)(pace * size);
	self->wire_bytes += size;
	self->repair_bytes += size;
	self->packets++;
	wake(self);
}

static enum kind kind_of(GstPaqmPacer *self, GstBuffer *buf, gboolean *marker, guint32 *ts)
{
	guint8 head[12] = {0};
	gboolean other;
	enum kind kind;

	gst_buffer_extract(buf, 0, head, sizeof(head));
	*marker = head[1] & 0x80;
	*ts = GST_READ_UINT32_BE(head + 4);
	kind = picture_kind(&self->pictures, head, self->frame.length > 0, self->ts, now_us(self),
			    &other);
	if (other)
		schedule_frame(self);
	return kind;
}

static GstFlowReturn take(GstPaqmPacer *self, GstBuffer *buf)
{
	GstFlowReturn flow;
	gboolean marker;
	enum kind kind;
	guint32 ts;

	g_mutex_lock(&self->lock);
	while (!self->flushing && self->flow == GST_FLOW_OK &&
	       g_queue_get_length(&self->queue) >= QUEUE_MAX)
		g_cond_wait(&self->cond, &self->lock);
	flow = self->flushing ? GST_FLOW_FLUSHING : self->flow;
	if (flow == GST_FLOW_OK) {
		kind = kind_of(self, buf, &marker, &ts);
		if (kind == PICTURE && schedule_train(self, buf)) {
			/* has its time */
		} else if (kind == PICTURE) {
			if (self->frame.length && ts != self->ts)
				schedule_frame(self);
			self->ts = ts;
			g_queue_push_tail(&self->frame, buf);
			if (marker || self->frame.length >= FRAME_MAX)
				schedule_frame(self);
		} else {
			schedule_repair(self, buf, kind);
		}
	} else {
		gst_buffer_unref(buf);
	}
	g_mutex_unlock(&self->lock);
	return flow;
}

static GstFlowReturn pacer_chain(GstPad *pad, GstObject *parent, GstBuffer *buf)
{
	(void)pad;
	return take(GST_PAQM_PACER(parent), buf);
}

static GstFlowReturn pacer_chain_list(GstPad *pad, GstObject *parent, GstBufferList *list)
{
	GstFlowReturn flow = GST_FLOW_OK;

	(void)pad;
	for (guint i = 0; i < gst_buffer_list_length(list) && flow == GST_FLOW_OK; i++)
		flow = take(GST_PAQM_PACER(parent), gst_buffer_ref(gst_buffer_list_get(list, i)));
	gst_buffer_list_unref(list);
	return flow;
}

static void clear(GstPaqmPacer *self)
{
	struct item *it;

	while ((it = g_queue_pop_head(&self->queue))) {
		gst_mini_object_unref(it->object);
		g_free(it);
	}
	g_queue_clear_full(&self->frame, (GDestroyNotify)gst_buffer_unref);
	self->busy = self->again = 0;
	self->pictures.known = self->pictures.many = FALSE;
}

static void pacer_loop(gpointer data)
{
	GstPaqmPacer *self = data;
	GstFlowReturn flow = GST_FLOW_OK;
	GstMiniObject *object;
	struct item *it = NULL;

	if (!self->slack_set) {
		/* The default timer slack of 50 us is a packet at 200 Mbit/s. */
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
		self->slack_set = TRUE;
	}
	g_mutex_lock(&self->lock);
	while (!self->flushing) { /* what is next may change while we wait */
		it = g_queue_peek_head(&self->queue);
		if (!it)
			g_cond_wait(&self->cond, &self->lock);
		else if (it->due && now_us(self) < it->due)
			wait_until(self, it->due);
		else
			break;
	}
	if (self->flushing) {
		g_mutex_unlock(&self->lock);
		gst_pad_pause_task(self->src);
		return;
	}
	g_queue_pop_head(&self->queue);
	if (g_queue_get_length(&self->queue) + 1 >= QUEUE_MAX)
		wake(self); /* only who found no room waits */
	g_mutex_unlock(&self->lock);

	object = it->object;
	g_free(it);
	if (GST_IS_BUFFER(object)) {
		flow = gst_pad_push(self->src, GST_BUFFER_CAST(object));
	} else {
		gst_pad_push_event(self->src, GST_EVENT_CAST(object));
	}
	if (flow == GST_FLOW_OK)
		return;
	g_mutex_lock(&self->lock);
	self->flow = flow;
	wake(self);
	g_mutex_unlock(&self->lock);
	if (flow < GST_FLOW_EOS && flow != GST_FLOW_FLUSHING)
		GST_ELEMENT_FLOW_ERROR(self, flow);
	gst_pad_pause_task(self->src);
}

static void set_flushing(GstPaqmPacer *self, gboolean flushing)
{
	g_mutex_lock(&self->lock);
	self->flushing = flushing;
	if (!flushing)
		self->flow = GST_FLOW_OK;
	wake(self);
	g_mutex_unlock(&self->lock);
}

static void start_task(GstPaqmPacer *self)
{
	set_flushing(self, FALSE);
	self->slack_set = FALSE;
	gst_pad_start_task(self->src, pacer_loop, self, NULL);
}

static void stop_task(GstPaqmPacer *self)
{
	set_flushing(self, TRUE);
	gst_pad_stop_task(self->src);
	g_mutex_lock(&self->lock);
	clear(self);
	g_mutex_unlock(&self->lock);
}

static gboolean pacer_event(GstPad *pad, GstObject *parent, GstEvent *event)
{
	GstPaqmPacer *self = GST_PAQM_PACER(parent);
	gboolean ret = TRUE;

	(void)pad;
	switch (GST_EVENT_TYPE(event)) {
	case GST_EVENT_FLUSH_START:
		ret = gst_pad_push_event(self->src, event);
		stop_task(self);
		return ret;
	case GST_EVENT_FLUSH_STOP:
		ret = gst_pad_push_event(self->src, event);
		start_task(self);
		return ret;
	default:
		break;
	}
	if (!GST_EVENT_IS_SERIALIZED(event))
		return gst_pad_push_event(self->src, event);
	g_mutex_lock(&self->lock);
	if (self->flushing) {
		gst_event_unref(event);
		ret = FALSE;
	} else {
		/* A frame without its marker will not get one any more. */
		if (GST_EVENT_TYPE(event) == GST_EVENT_EOS && self->frame.length)
			schedule_frame(self);
		due_push(&self->queue, GST_MINI_OBJECT_CAST(event), 0);
		wake(self);
	}
	g_mutex_unlock(&self->lock);
	return ret;
}

static gboolean pacer_activate(GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
	(void)pad;
	if (mode != GST_PAD_MODE_PUSH)
		return FALSE;
	if (active)
		start_task(GST_PAQM_PACER(parent));
	else
		stop_task(GST_PAQM_PACER(parent));
	return TRUE;
}

/* The last packet of a frame leaves up to one interval after the first. */
static gboolean pacer_query(GstPad *pad, GstObject *parent, GstQuery *query)
{
	GstPaqmPacer *self = GST_PAQM_PACER(parent);
	GstClockTime lo, hi, interval;
	gboolean live;

	if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY)
		return gst_pad_query_default(pad, parent, query);
	if (!gst_pad_peer_query(self->sink, query))
		return FALSE;
	gst_query_parse_latency(query, &live, &lo, &hi);
	g_mutex_lock(&self->lock);
	interval = self->interval;
	g_mutex_unlock(&self->lock);
	lo += interval;
	if (GST_CLOCK_TIME_IS_VALID(hi))
		hi += interval;
	gst_query_set_latency(query, live, lo, hi);
	return TRUE;
}

/* What is due by another clock goes at once, in order. */
static gboolean set_clock(GstElement *element, GstClock *clock)
{
	GstPaqmPacer *self = GST_PAQM_PACER(element);
	GstClock *next = clock ? gst_object_ref(clock) : gst_system_clock_obtain();

	g_mutex_lock(&self->lock);
	if (gst_object_replace((GstObject **)&self->clock, GST_OBJECT(next))) {
		for (GList *l = self->queue.head; l; l = l->next)
			((struct item *)l->data)->due = 0;
		self->busy = self->again = 0;
		wake(self);
	}
	g_mutex_unlock(&self->lock);
	gst_object_unref(next);
	return GST_ELEMENT_CLASS(gst_paqm_pacer_parent_class)->set_clock(element, clock);
}

/* What waits leaves at another rate from now on. Called with the lock held. */
static void set_rate(GstPaqmPacer *self, guint64 rate)
{
	gint64 now = now_us(self), left = MAX(self->busy, self->again) - now;
	gint64 most = MAX(left, HOLD_MAX);
	guint64 before = self->rate;

	self->rate = rate;
	if (!before || !rate || before == rate)
		return;
	if (due_at_rate(left, 0, before, rate) > most) { /* a deep fall: as slow as may be */
		before = (guint64)most;
		rate = (guint64)left;
	}
	for (GList *l = self->queue.head; l; l = l->next) {
		struct item *it = l->data;

		it->due = due_at_rate(it->due, now, before, rate);
	}
	self->busy = due_at_rate(self->busy, now, before, rate);
	self->again = due_at_rate(self->again, now, before, rate);
	wake(self);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
	GstPaqmPacer *self = GST_PAQM_PACER(object);
	gboolean changed;
	guint64 before;

	g_mutex_lock(&self->lock);
	before = self->interval;
	if (id == PROP_INTERVAL)
		self->interval = g_value_get_uint64(value);
	else if (id == PROP_RESERVE)
		self->reserve = g_value_get_uint(value);
	else if (id == PROP_BELOW)
		self->below = g_value_get_uint(value);
	else if (id == PROP_RATE)
		set_rate(self, g_value_get_uint64(value));
	else
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
	changed = self->interval != before;
	g_mutex_unlock(&self->lock);
	if (changed) /* the latency is another one now */
		gst_element_post_message(GST_ELEMENT(self),
					 gst_message_new_latency(GST_OBJECT(self)));
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
	GstPaqmPacer *self = GST_PAQM_PACER(object);

	g_mutex_lock(&self->lock);
	if (id == PROP_INTERVAL)
		g_value_set_uint64(value, self->interval);
	else if (id == PROP_RESERVE)
		g_value_set_uint(value, self->reserve);
	else if (id == PROP_BELOW)
		g_value_set_uint(value, self->below);
	else if (id == PROP_RATE)
		g_value_set_uint64(value, self->rate);
	else if (id == PROP_WIRE_BYTES)
		g_value_set_uint64(value, self->wire_bytes);
	else if (id == PROP_PACKETS)
		g_value_set_uint64(value, self->packets);
	else if (id == PROP_REPAIR_BYTES)
		g_value_set_uint64(value, self->repair_bytes);
	else
		G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
	g_mutex_unlock(&self->lock);
}

static void finalize(GObject *object)
{
	GstPaqmPacer *self = GST_PAQM_PACER(object);

	clear(self);
	gst_clear_object(&self->clock);
	g_mutex_clear(&self->lock);
	g_cond_clear(&self->cond);
	G_OBJECT_CLASS(gst_paqm_pacer_parent_class)->finalize(object);
}

static void gst_paqm_pacer_class_init(GstPaqmPacerClass *klass)
{
	GObjectClass *object = G_OBJECT_CLASS(klass);
	GstElementClass *element = GST_ELEMENT_CLASS(klass);

	GST_DEBUG_CATEGORY_INIT(paqmpacer_debug, "paqmpacer", 0, "P-AQM pacer");
	object->set_property = set_property;
	object->get_property = get_property;
	object->finalize = finalize;
	element->set_clock = set_clock;
	gst_element_class_add_static_pad_template(element, &sink_template);
	gst_element_class_add_static_pad_template(element, &src_template);
	gst_element_class_set_static_metadata(element, "P-AQM pacer", "Filter/Network/RTP",
					      "Spreads the packets of each frame over its interval",
					      "P-AQM");
	gst_element_class_add_static_metadata(
		element, "Example-live",
		"gst-launch-1.0 videotestsrc is-live=true ! video/x-raw,framerate=25/1 ! "
		"x264enc tune=zerolatency bitrate=800 ! rtph264pay ! paqmpacer interval=40000000 ! "
		"udpsink host=127.0.0.1 port=5004 sync=false");
	g_object_class_install_property(
		object, PROP_INTERVAL,
		g_param_spec_uint64("interval", "Interval", "Frame interval, ns", GST_MSECOND,
				    10 * GST_SECOND, DEFAULT_INTERVAL,
				    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
					    GST_PARAM_MUTABLE_PLAYING));
	g_object_class_install_property(
		object, PROP_RESERVE,
		g_param_spec_uint("reserve", "Reserve",
				  "Packets behind a frame may take this part of its bytes, %", 0,
				  100, 0, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS));
	g_object_class_install_property(
		object, PROP_BELOW,
		g_param_spec_uint("below", "Below",
				  "Bytes beside RTP: IPv4 and UDP 28, IPv6 48, SRTP 10 more", 0,
				  300, DEFAULT_BELOW, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS));
	g_object_class_install_property(
		object, PROP_RATE,
		g_param_spec_uint64("rate", "Rate",
				    "Most that frames take, bit/s with what is below RTP; 0: any",
				    0, G_MAXUINT64, 0,
				    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
					    GST_PARAM_MUTABLE_PLAYING));
	g_object_class_install_property(
		object, PROP_WIRE_BYTES,
		g_param_spec_uint64("wire-bytes", "Wire bytes",
				    "Bytes scheduled so far, with what is below RTP", 0,
				    G_MAXUINT64, 0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
	g_object_class_install_property(
		object, PROP_PACKETS,
		g_param_spec_uint64("packets", "Packets", "Packets scheduled so far", 0,
				    G_MAXUINT64, 0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
	g_object_class_install_property(
		object, PROP_REPAIR_BYTES,
		g_param_spec_uint64("repair-bytes", "Repair bytes",
				    "Part of wire-bytes that belongs to no frame", 0, G_MAXUINT64,
				    0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void gst_paqm_pacer_init(GstPaqmPacer *self)
{
	g_mutex_init(&self->lock);
	g_cond_init(&self->cond);
	g_queue_init(&self->queue);
	g_queue_init(&self->frame);
	self->clock = gst_system_clock_obtain();
	self->interval = DEFAULT_INTERVAL;
	self->below = DEFAULT_BELOW;
	self->flushing = TRUE;
	self->sink = gst_pad_new_from_static_template(&sink_template, "sink");
	gst_pad_set_chain_function(self->sink, pacer_chain);
	gst_pad_set_chain_list_function(self->sink, pacer_chain_list);
	gst_pad_set_event_function(self->sink, pacer_event);
	GST_PAD_SET_PROXY_CAPS(self->sink);
	gst_element_add_pad(GST_ELEMENT(self), self->sink);
	self->src = gst_pad_new_from_static_template(&src_template, "src");
	gst_pad_set_activatemode_function(self->src, pacer_activate);
	gst_pad_set_query_function(self->src, pacer_query);
	gst_element_add_pad(GST_ELEMENT(self), self->src);
}

gboolean gst_paqm_pacer_register(GstPlugin *plugin)
{
	return gst_element_register(plugin, "paqmpacer", GST_RANK_NONE, GST_TYPE_PAQM_PACER);
}
