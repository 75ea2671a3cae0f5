// SPDX-License-Identifier: GPL-2.0
/* Rates of the controller reach the encoder, advice reaches the controller. */
#include "streamer/rtp/carry.h"
#include "streamer/options.h"
#include "streamer/outgoing/format.h"
#include "streamer/outgoing/outgoing.h"
#include "streamer/rtp/wire.h"

#define PACED_PERCENT 105 /* a little more than granted: what waits is to be made good */
#define PROBE_BYTES (28 + PAQM_PROBE_LEN)

/* What of a rate is left for pictures and the headers of their packets. */
static guint64 picture_rate(const struct outgoing *o, double rate)
{
	if (o->carrier == CARRIER_IN_BAND)
		rate -= 8.0 * CARRY_ELEMENT_BYTES / o->interval;
	if (o->carrier == CARRIER_PROBE)
		rate -= 8.0 * PROBE_BYTES * 1000 / RATE_TICK_MS;
	return (guint64)MAX(rate, 1000);
}

/* What is left of the rate for pictures; all encoders have their equal parts. */
void follow_left(struct outgoing *o, guint64 left)
{
	guint64 rate = picture_rate(o, (double)left) / (guint64)o->n_encoders;

	if (o->adaptor) { /* it may answer late; who is told sends no more than that */
		adaptor_rate(o->adaptor, rate);
		g_object_set(o->pacer, "rate", o->granted / 100 * PACED_PERCENT, NULL);
		return;
	}
	for (int k = 0; k < o->n_encoders; k++)
		g_object_set(o->encoders[k], "rate", MAX(rate, 1000), NULL);
}

/* The first picture is as the source has it: whoever records takes its size for that of all. */
void follow_format(struct outgoing *o)
{
	struct ctl_format f;

	if (!o->kind->format || !o->frames)
		return;
	rate_format(o->rate, &f);
	if (f.width == o->format.width && f.height == o->format.height && f.fps == o->format.fps)
		return;
	o->format = f;
	format_use(GST_BIN(o->pipeline), &f, 1 / o->source_interval);
}

static guint longest_packet(const struct outgoing *o, gboolean follows, double rate)
{
	return o->kind->bursts ? wire_burst_packet(rate, 1 / o->interval)
			       : wire_packet(follows, rate) - trains_room(o->kind);
}

void follow_trains(struct outgoing *o)
{
	struct ctl_train t;

	if (o->trains)
		trains_want(o->trains, rate_train(o->rate, &t) ? &t : NULL, o->interval);
}

void follow_rate(guint64 rate, gboolean follows, gpointer outgoing)
{
	struct outgoing *o = outgoing;
	guint64 left = rate;

	o->granted = rate;
	/* Of several encoders one might change while the payloader cuts a picture of another. */
	if (!o->adaptor && !o->interlace)
		g_object_set(o->encoders[0], "packet", longest_packet(o, follows, (double)rate),
			     "packet-coarse", longest_packet(o, FALSE, (double)rate), NULL);
	if (!o->repair || repair_tick(o->repair, rate, NULL, &left))
		follow_left(o, left);
}

/* Tell the controller the lowest advice in force: of paqmd and of what has been returned. */
void follow_advise(struct outgoing *o)
{
	struct ctl_advice a = o->daemon;

	o->advised = MIN(returned_rate(&o->returned, (guint64)boottime_ns()), o->rate_max);
	if (o->advised && (a.rate <= 0 || (double)o->advised < a.rate))
		a = (struct ctl_advice){.rate = (double)o->advised,
					.value = 1, /* hold: only the absolute rate is known */
					.router = o->returned.newest.field.router,
					.seq = o->returned.newest.seq};
	o->told = a;
	rate_advise(o->rate, &a);
}

static void on_advice(const struct paqm_client_advice *a, gpointer data)
{
	struct outgoing *o = data;

	o->daemon = advice_control(a);
	follow_advise(o);
	if (a->rate_bps)
		train_told(o->train);
	advice_log(o->feedback_csv, a);
}

void follow_register(struct outgoing *o)
{
	GInetSocketAddress *local = o->from ? g_object_ref(o->from) : socket_address(o->socket);
	struct advice_flow flow = {
		.from = local ? g_inet_socket_address_get_address(local) : NULL,
		.from_port = local ? g_inet_socket_address_get_port(local) : 0,
		.to = g_inet_socket_address_get_address(o->dest),
		.to_port = g_inet_socket_address_get_port(o->dest),
		.ssrc = o->wrapped ? 0 : o->ssrc,
		.floor_bps = o->advice_min ? o->advice_min : o->rate_min,
		.ceil_bps = o->rate_max,
		.gop_s = o->gop * o->interval,
		.answer_s = o->interval,
	};

	o->advice = advice_new(o->paqmd);
	o->advice_flow = advice_add(o->advice, &flow, on_advice, o);
	g_clear_object(&local);
}

void follow_begin(double ms, gboolean told, gpointer outgoing)
{
	struct outgoing *o = outgoing;

	if (g_atomic_int_compare_and_exchange(&o->waiting, 1, 0))
		o->begins(ms, told, o->data);
}
