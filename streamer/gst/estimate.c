// SPDX-License-Identifier: GPL-2.0
/* The thread of paqmestimator; see estimate.h. */
#include "streamer/gst/estimate.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

GST_DEBUG_CATEGORY_EXTERN(paqmestimator_debug);
#define GST_CAT_DEFAULT paqmestimator_debug

#define TICK_MS 500
#define SEARCH_MS 100 /* between looks for the flow */
#define AGAIN_TICKS 4 /* ICE may select another pair later */
#define SMALL 100     /* a change by less than one part in so many is not told */
#define NET_FREE 0.95 /* a safety net below so much of the former advice has found a limit */
#define FREE 1.5      /* the pacer sends so many times the rate while there is no advice */

double estimate_expansion(const GstPaqmEstimator *self)
{
	return (self->mean_packet + self->below) / self->mean_packet;
}

double estimate_pace(const GstPaqmEstimator *self)
{
	return self->fits * estimate_expansion(self) * (self->advises ? 1 : FREE);
}

void estimate_wake(GstPaqmEstimator *self)
{
	int error = 0;

	g_mutex_lock(&self->lock); /* or it is closed meanwhile, and the number another file's */
	if (self->wake >= 0 && eventfd_write(self->wake, 1))
		error = errno;
	g_mutex_unlock(&self->lock);
	if (error && error != EAGAIN)
		GST_WARNING_OBJECT(self, "eventfd: %s", g_strerror(error));
}

/* What fits, at the RTP level. */
static guint estimate_now(GstPaqmEstimator *self, guint net)
{
	double rate = self->advised > 0 ? self->advised / estimate_expansion(self) : 0;

	if (net && (rate <= 0 || net < rate))
		rate = net;
	if (rate <= 0)
		rate = self->start;
	return (guint)CLAMP(rate, self->least, MAX(self->least, self->most));
}

void estimate_update(GstPaqmEstimator *self)
{
	guint net = 0, now;
	gboolean tell;

	if (self->net)
		g_object_get(self->net, "estimated-bitrate", &net, NULL);
	g_mutex_lock(&self->lock);
	self->fits = estimate_now(self, net);
	self->advises = self->advised > 0 || net;
	now = self->fits;
	if (self->advises)
		now = (guint)CLAMP(balance_tell(&self->balance, now), self->least,
				   MAX(self->least, self->most));
	tell = now < self->estimate - self->estimate / SMALL ||
	       now > self->estimate + self->estimate / SMALL ||
	       (now == self->fits && now != self->estimate);
	if (tell)
		self->estimate = now;
	g_mutex_unlock(&self->lock);
	if (tell)
		g_object_notify(G_OBJECT(self), "estimated-bitrate");
}

/* webrtcbin's thread: it answers what was asked. */
static void on_stats(GstPromise *promise, gpointer data)
{
	const GstStructure *reply = gst_promise_get_reply(promise);
	GstPaqmEstimator *self = data;
	struct route r = {0};

	if (reply)
		route_of_stats(reply, &r);
	g_mutex_lock(&self->lock);
	self->asked = FALSE;
	if (r.destination) {
		route_clear(&self->found);
		self->found = r;
	}
	g_mutex_unlock(&self->lock);
	gst_promise_unref(promise);
	estimate_wake(self);
}

static void ask(GstPaqmEstimator *self, GstElement *webrtc)
{
	GstPromise *promise;
	gboolean asked;

	g_mutex_lock(&self->lock);
	asked = self->asked;
	self->asked = TRUE;
	g_mutex_unlock(&self->lock);
	if (asked)
		return;
	promise = gst_promise_new_with_change_func(on_stats, gst_object_ref(self),
						   (GDestroyNotify)gst_object_unref);
	g_signal_emit_by_name(webrtc, "get-stats", NULL, promise);
}

/* Return: whether @r is known; of webrtcbin what it has said to the last question. */
static gboolean search(GstPaqmEstimator *self, struct route *r)
{
	GstElement *webrtc = route_webrtcbin(GST_ELEMENT(self));

	if (!webrtc)
		return route_of_sink(self->src, &self->name, r);
	ask(self, webrtc);
	gst_object_unref(webrtc);
	g_mutex_lock(&self->lock);
	*r = self->found;
	memset(&self->found, 0, sizeof(self->found));
	g_mutex_unlock(&self->lock);
	return r->destination != NULL;
}

/* The bounds as paqmd wants them, at the IP level. */
static void bounds(GstPaqmEstimator *self, guint64 *floor, guint64 *ceiling)
{
	g_mutex_lock(&self->lock);
	*floor = (guint64)(self->least * estimate_expansion(self));
	*ceiling = (guint64)(MAX(self->least, self->most) * estimate_expansion(self));
	g_mutex_unlock(&self->lock);
}

/* A flow was found, or another than before. Takes @r. */
static void set_route(GstPaqmEstimator *self, struct route *r)
{
	guint64 floor, ceiling;

	if (self->flow >= 0 && route_equal(r, &self->route)) {
		route_clear(r);
		return;
	}
	if (self->flow >= 0)
		paqm_client_remove(self->client, self->flow);
	route_clear(&self->route);
	self->route = *r;
	g_mutex_lock(&self->lock);
	self->below = r->below;
	self->advised = 0;
	g_mutex_unlock(&self->lock);
	bounds(self, &floor, &ceiling);
	self->flow = paqm_client_add(self->client, r->source, r->source_port, r->destination,
				     r->destination_port, 0, floor, ceiling);
	self->told_floor = floor;
	self->told_ceiling = ceiling;
	if (self->flow < 0)
		GST_WARNING_OBJECT(self, "flow to %s port %u: %s", r->destination,
				   r->destination_port, g_strerror(-self->flow));
	else
		GST_INFO_OBJECT(self, "flow from %s port %u to %s port %u",
				r->source ? r->source : "any", r->source_port, r->destination,
				r->destination_port);
	estimate_update(self);
}

/*
 * More is advised. A safety net whose estimate is not the lower one begins there, too: it has found
 * no other limit, and would rise by some per cent a second. One that has comes back by itself.
 */
static void lift_net(GstPaqmEstimator *self)
{
	guint net = 0, most;
	double rate, before;

	if (!self->net)
		return;
	g_object_get(self->net, "estimated-bitrate", &net, NULL);
	g_mutex_lock(&self->lock);
	most = self->most;
	rate = self->advised / estimate_expansion(self);
	before = self->lifted > 0 ? self->lifted : self->start;
	if (rate > 0)
		self->lifted = rate;
	g_mutex_unlock(&self->lock);
	if (rate > net && net > NET_FREE * MIN(before, most))
		g_object_set(self->net, "estimated-bitrate", (guint)MIN(rate, most), NULL);
}

static void take_advice(GstPaqmEstimator *self)
{
	struct paqm_client_advice a;

	while (paqm_client_next(self->client, &a)) {
		if (a.flow != self->flow)
			continue;
		if (a.cause == PAQM_CLIENT_REFUSED)
			GST_WARNING_OBJECT(self, "paqmd refuses the flow: %s", g_strerror(a.error));
		g_mutex_lock(&self->lock);
		self->advice = a;
		self->advised = (double)a.rate_bps;
		g_mutex_unlock(&self->lock);
		lift_net(self);
		estimate_update(self);
	}
}

/* The encoder is told the estimate, less headers; the pacer sends what fits. */
static void obey(GstPaqmEstimator *self)
{
	GstClockTime interval, paced;
	double rate, told;
	guint below;

	g_mutex_lock(&self->lock);
	rate = estimate_pace(self);
	told = self->estimate * estimate_expansion(self);
	interval = self->interval;
	below = self->below;
	g_mutex_unlock(&self->lock);
	if (self->retune)
		retune_rate(self->retune, told);
	g_object_get(self->pacer, "interval", &paced, NULL);
	g_object_set(self->pacer, "rate", (guint64)rate, "below", below, NULL);
	if (interval > paced + paced / 10 || interval < paced - paced / 10)
		g_object_set(self->pacer, "interval", interval, NULL);
}

static void tick(GstPaqmEstimator *self, double seconds)
{
	guint64 floor, ceiling, sent;

	g_mutex_lock(&self->lock);
	sent = self->wire_bytes - self->wire_seen;
	self->wire_seen = self->wire_bytes;
	g_mutex_unlock(&self->lock);
	if (self->retune)
		retune_sent(self->retune, sent);
	if (self->flow < 0)
		return;
	paqm_client_status(self->client, self->flow, (guint64)(8.0 * (double)sent / seconds),
			   self->ticks, 0);
	bounds(self, &floor, &ceiling);
	/* Their share of headers moves a little all the time. */
	if (ceiling > self->told_ceiling * 1.05 || ceiling < self->told_ceiling * 0.95 ||
	    floor > self->told_floor * 1.05 || floor < self->told_floor * 0.95) {
		paqm_client_limits(self->client, self->flow, floor, ceiling);
		self->told_floor = floor;
		self->told_ceiling = ceiling;
	}
}

static gboolean stopped(GstPaqmEstimator *self)
{
	gboolean stop;

	g_mutex_lock(&self->lock);
	stop = self->stop;
	g_mutex_unlock(&self->lock);
	return stop;
}

static gpointer run(gpointer data)
{
	GstPaqmEstimator *self = data;
	struct pollfd fds[] = {{paqm_client_fd(self->client), POLLIN, 0}, {self->wake, POLLIN, 0}};
	gint64 next = 0, search_at = 0;

	while (!stopped(self)) {
		gint64 now = g_get_monotonic_time(), due;
		struct route r;
		eventfd_t n;

		if (now >= search_at) {
			if (search(self, &r))
				set_route(self, &r);
			search_at =
				now + (self->flow < 0 ? SEARCH_MS : AGAIN_TICKS * TICK_MS) * 1000;
		}
		if (now >= next) {
			if (next)
				tick(self, TICK_MS / 1000.0 + (double)(now - next) / 1e6);
			self->ticks++;
			next = now + TICK_MS * 1000;
		}
		estimate_update(self); /* another picture may have come */
		obey(self);
		due = MIN(next, search_at);
		if (poll(fds, 2, (int)((due - now) / 1000 + 1)) > 0 && fds[1].revents)
			eventfd_read(self->wake, &n);
		take_advice(self);
	}
	return NULL;
}

/* The element that `encoder` names, anywhere in the pipeline. */
static gboolean find_encoder(GstPaqmEstimator *self)
{
	GstObject *top = gst_object_ref(GST_OBJECT(self)), *up;
	GError *error = NULL;
	GstElement *encoder;

	if (!self->encoder)
		return TRUE;
	while ((up = gst_object_get_parent(top))) {
		gst_object_unref(top);
		top = up;
	}
	encoder = gst_bin_get_by_name(GST_BIN(top), self->encoder);
	gst_object_unref(top);
	if (encoder) {
		self->retune = retune_new(encoder, &error);
		gst_object_unref(encoder);
	}
	if (self->retune)
		return TRUE;
	GST_ELEMENT_ERROR(
		self, RESOURCE, NOT_FOUND,
		("encoder=%s: its bit rate cannot be set", self->encoder),
		("%s", error ? error->message : "no element of the pipeline has this name"));
	g_clear_error(&error);
	return FALSE;
}

gboolean estimate_start(GstPaqmEstimator *self)
{
	int wake;

	if (!find_encoder(self))
		return FALSE;
	self->client = paqm_client_open(self->socket);
	wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g_mutex_lock(&self->lock);
	self->wake = wake;
	g_mutex_unlock(&self->lock);
	if (!self->client || wake < 0) {
		GST_ELEMENT_ERROR(self, RESOURCE, OPEN_READ_WRITE,
				  ("cannot become a client of paqmd"), ("%s", g_strerror(errno)));
		return FALSE;
	}
	self->flow = -1;
	self->stop = FALSE;
	self->thread = g_thread_new("paqmestimator", run, self);
	return TRUE;
}

void estimate_stop(GstPaqmEstimator *self)
{
	int wake;

	g_mutex_lock(&self->lock);
	self->stop = TRUE;
	g_mutex_unlock(&self->lock);
	estimate_wake(self);
	if (self->thread)
		g_thread_join(self->thread);
	self->thread = NULL;
	g_mutex_lock(&self->lock);
	wake = self->wake;
	self->wake = -1;
	g_mutex_unlock(&self->lock);
	if (wake >= 0)
		close(wake);
	g_clear_pointer(&self->retune, retune_free);
	g_clear_pointer(&self->client, paqm_client_close);
	g_clear_pointer(&self->name, route_name_drop);
	route_clear(&self->route);
	g_mutex_lock(&self->lock);
	self->advised = self->lifted = 0;
	self->balance = balance_new();
	g_mutex_unlock(&self->lock);
}
