// SPDX-License-Identifier: GPL-2.0
/* Rates of the controller reach the encoder, advice reaches the controller. */
#include "streamer/carry.h"
#include "streamer/send/send.h"
#include "streamer/wire.h"

#define PACED_PERCENT 105 /* a little more than granted: what waits is to be made good */

/* What of a rate is left for pictures and the headers of their packets. */
static guint64 picture_rate(const struct sender *s, double rate)
{
	if (s->element)
		rate -= 8.0 * CARRY_ELEMENT_BYTES / s->interval;
	if (s->probes)
		rate -= 8.0 * PROBE_BYTES * 1000 / RATE_TICK_MS;
	return (guint64)MAX(rate, 1000);
}

/* All encoders have their equal parts. */
void send_use_rate(struct sender *s, guint64 left)
{
	guint64 rate = picture_rate(s, (double)left) / (guint64)s->encoders;

	if (s->adaptor) { /* it may answer late; who is told sends no more than that */
		adaptor_rate(s->adaptor, rate);
		g_object_set(s->pacer, "rate", s->granted / 100 * PACED_PERCENT, NULL);
		return;
	}
	for (int k = 0; k < s->encoders; k++)
		g_object_set(s->encoder[k], "rate", MAX(rate, 1000), NULL);
}

void send_apply_rate(guint64 rate, gboolean follows, gpointer data)
{
	struct sender *s = data;
	guint64 left = rate;

	s->granted = rate;
	/* Of several encoders one might change while the payloader cuts a picture of another. */
	if (!s->adaptor && !s->interlace)
		g_object_set(s->encoder[0], "packet", wire_packet(follows, (double)rate), NULL);
	if (!s->repair || repair_tick(s->repair, rate, NULL, &left))
		send_use_rate(s, left);
}

/* Tell the controller the lowest advice in force: of paqmd and of what has been returned. */
void send_advise(struct sender *s)
{
	struct ctl_advice a = s->daemon;

	s->advised = MIN(returned_rate(&s->returned, (guint64)monotonic_ns()), s->rate_max);
	if (s->advised && (a.rate <= 0 || (double)s->advised < a.rate))
		a = (struct ctl_advice){.rate = (double)s->advised,
					.value = 1, /* hold: only the absolute rate is known */
					.router = s->returned.newest.field.router,
					.seq = s->returned.newest.seq};
	rate_advise(s->rate, &a);
}

static void on_advice(const struct paqm_client_advice *a, gpointer data)
{
	struct sender *s = data;

	s->daemon = (struct ctl_advice){.rate = (double)a->rate_bps,
					.value = a->value,
					.router = a->router_id,
					.seq = a->seq};
	send_advise(s);
	if (a->rate_bps)
		train_told(s->train);
	advice_log(s->feedback_csv, a);
}

void send_register_flow(struct sender *s)
{
	GSocketAddress *local = g_socket_get_local_address(s->rtp, NULL);
	struct advice_flow flow = {
		.from = local ? g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(local))
			      : NULL,
		.from_port = socket_port(s->rtp),
		.to = g_inet_socket_address_get_address(s->dest),
		.to_port = g_inet_socket_address_get_port(s->dest),
		.ssrc = (guint32)s->ssrc,
		.floor_bps = s->rate_min,
		.ceil_bps = s->rate_max,
		.gop_s = s->gop * s->interval,
		.answer_s = s->interval,
	};

	s->advice = advice_new(s->paqmd);
	s->advice_flow = advice_add(s->advice, &flow, on_advice, s);
	g_clear_object(&local);
}

void send_begin_pictures(double ms, gboolean told, gpointer data)
{
	struct sender *s = data;

	if (!g_atomic_int_compare_and_exchange(&s->waiting, 1, 0))
		return;
	printf("begins %.0f ms after its first packet, %s, at %.0f kbit/s\n", ms,
	       told ? "told by a router" : "told by nobody", s->granted / 1e3);
	fflush(stdout);
}

/* With paqmd: let routers know of the stream before there is a picture. */
void send_start_train(struct sender *s)
{
	struct train_params p = {
		.socket = s->rtp,
		.to = G_SOCKET_ADDRESS(s->dest),
		.ssrc = (guint32)s->ssrc,
		.first = s->first_seq,
		.ts = s->ts_offset,
	};

	/* It is H.264, as far as anybody looks. */
	if (s->waiting || s->adaptor || !advice_connected(s->advice))
		return;
	g_atomic_int_set(&s->waiting, 1);
	s->train = train_start(&p, send_begin_pictures, s);
}
