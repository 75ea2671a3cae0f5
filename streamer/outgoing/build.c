// SPDX-License-Identifier: GPL-2.0
/* Outgoing video: its elements, its controller's life; see outgoing.h. */
#include "streamer/outgoing/outgoing.h"

#include <string.h>

#include "streamer/encoder/encoded.h"
#include "streamer/options.h"
#include "streamer/outgoing/choice.h"
#include "streamer/outgoing/format.h"
#include "streamer/media/parts.h"
#include "streamer/rtp/wire.h"

/* An element that is not there is found before the stream begins. */
static gboolean need_element(const struct ctl_kind *kind, GError **error)
{
	GstElementFactory *factory = kind->element ? gst_element_factory_find(kind->element) : NULL;

	if (kind->element && !factory) {
		g_set_error(error, USAGE_ERROR, 0,
			    "controller %s needs the GStreamer element %s, which is not installed: "
			    "build plugin rsrtp of gst-plugins-rs (crate gst-plugin-rtp), put it "
			    "where GST_PLUGIN_PATH points, or choose another --controller",
			    kind->name, kind->element);
		return FALSE;
	}
	if (factory)
		gst_object_unref(factory);
	return TRUE;
}

gboolean outgoing_check(struct outgoing *o, GError **error)
{
	gsize n = strlen(OWN_ENCODER);

	if (!need_element(o->kind, error))
		return FALSE;
	if (o->interlace && o->encoder) {
		g_set_error(error, USAGE_ERROR, 0, "--interlace does not go with --encoder");
		return FALSE;
	}
	if (o->kind->steps && o->carrier != CARRIER_ICMP) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--controller %s works only with --carrier icmp: other carriers tell "
			    "rates, not steps; use --controller erf",
			    o->kind->name);
		return FALSE;
	}
	if (o->kind->extension) {
		g_set_error(error, USAGE_ERROR, 0, "--controller %s: only with send --levels",
			    o->kind->name);
		return FALSE;
	}
	if (ctl_decay(o->kind, o->control) > 0) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--controller %s with a send buffer is for send --trace: pictures of "
			    "this encoder keep within the rate",
			    o->kind->name);
		return FALSE;
	}
	if (o->kind->format && (o->interlace || o->encoder)) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--controller %s chooses the size of pictures, and does not go with %s",
			    o->kind->name, o->interlace ? "--interlace" : "--encoder");
		return FALSE;
	}
	/* ours, whatever properties it is given, or one that needs an adaptor */
	if (!o->encoder || (!strncmp(o->encoder, OWN_ENCODER, n) && strchr(" \t", o->encoder[n])))
		return TRUE;
	o->adaptor = adaptor_new(o->encoder, (guint)o->gop, o->headers, error);
	if (!o->adaptor)
		return FALSE;
	if (adaptor_payload(o->adaptor) == VIDEO_PT || (!o->repairs.rtx && !o->repairs.fec))
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0, "--rtx and --fec need an H.264 encoder");
	return FALSE;
}

/*
 * Encoder and payloader. With --interlace one encoder per part of a picture, each with its part
 * of the rate.
 */
static char *coder_elements(const struct outgoing *o)
{
	const char *own = o->encoder ? o->encoder + strlen(OWN_ENCODER) : "";
	char *options, *encoders, *text;

	if (o->adaptor)
		return adaptor_text(o->adaptor);
	options = g_strdup_printf("gop=%d qp-min=%d headers=%u %s rate-max=%" G_GUINT64_FORMAT "%s",
				  o->gop, o->qp_min, o->headers, own,
				  o->rate_max / (guint64)o->n_encoders,
				  /* a key picture per group: the way back for who has lost one */
				  o->interlace ? " refresh=idr floor-qp=52"
				  /* who chooses the size wants no other floor */
				  : o->kind->format ? " floor-qp=52"
						    : "");
	encoders = o->interlace ? split_elements(o->interlace, options)
				: g_strdup_printf(OWN_ENCODER " %s name=enc0 ! ", options);
	text = g_strdup_printf("%srtph264pay name=pay pt=%d config-interval=0 aggregate-mode=none",
			       encoders, VIDEO_PT);
	g_free(options);
	g_free(encoders);
	return text;
}

char *outgoing_elements(struct outgoing *o)
{
	char *coder, *repairs, *text;

	o->n_encoders = o->interlace ? interlace_phases(o->interlace) : 1;
	coder = coder_elements(o);
	repairs = repair_elements(&o->repairs);
	text = g_strdup_printf("%s%s mtu=%u ! %spaqmpacer name=pacer below=%u%s%s%s",
			       format_elements(o->kind), coder,
			       wire_rtp_mtu(WIRE_PACKET - trains_room(o->kind), o->headers),
			       repairs, wire_below(o->headers), o->kind->element ? " ! " : "",
			       o->kind->element ? o->kind->element : "",
			       o->kind->element ? " name=estimator" : "");
	g_free(coder);
	g_free(repairs);
	return text;
}

const char *outgoing_end(const struct outgoing *o)
{
	return o->kind->element ? "estimator" : "pacer";
}

static gboolean use_payloader(struct outgoing *o, GError **error)
{
	g_object_set(o->pay, "ssrc", o->ssrc, "timestamp-offset", o->ts_offset, "seqnum-offset",
		     (gint)o->first_seq, NULL);
	if (o->interlace)
		o->split = split_new(GST_BIN(o->pipeline), o->interlace, (guint)o->gop, o->pay);
	if (o->carrier == CARRIER_IN_BAND)
		carried_in(o, o->pay);
	if (o->kind->train)
		o->trains = trains_new(o->pay, o->pacer, o->headers);
	return rate_number_packets(o->pay, error);
}

gboolean outgoing_build(struct outgoing *o, GstElement *pipeline, GError **error)
{
	GstBin *bin = GST_BIN(pipeline);

	o->pipeline = pipeline;
	o->begun = -1;
	for (int k = 0; k < o->n_encoders; k++) {
		char name[8];

		g_snprintf(name, sizeof(name), o->adaptor ? "enc" : "enc%d", k);
		o->encoders[k] = gst_bin_get_by_name(bin, name);
		g_object_set(o->encoders[k], "min-force-key-unit-interval",
			     (guint64)KEY_INTERVAL_NS, NULL);
	}
	o->pacer = gst_bin_get_by_name(bin, "pacer");
	g_object_set(o->pacer, "interval", (guint64)(o->interval * GST_SECOND / o->n_encoders),
		     NULL);
	if (o->repairs.rtx || o->repairs.fec)
		o->repair = repair_new(bin, o->pacer, &o->repairs);
	o->pay = gst_bin_get_by_name(bin, "pay");
	watch_pictures(o);
	if (!use_payloader(o, error))
		return FALSE;
	o->estimator = gst_bin_get_by_name(bin, "estimator");
	if (o->estimator)
		g_object_set(o->estimator, "min-bitrate", (guint)o->rate_min, "max-bitrate",
			     (guint)o->rate_max, "estimated-bitrate",
			     (guint)(CTL_START_SHARE * o->rate_max), NULL);
	o->waiting = o->carrier != CARRIER_ICMP;
	if (!o->waiting)
		return TRUE;
	o->returned.nonce = o->nonce;
	/* above every router's rate, so that each that speaks shows */
	o->field =
		(struct paqm_field){.rate = paqm_f32_encode(PAQM_VALUE_MAX, 0), .nonce = o->nonce};
	return TRUE;
}

void outgoing_start(struct outgoing *o, GstElement *bin, GObject *session)
{
	struct ctl_params limits = {.rate_min = (double)o->rate_min,
				    .rate_max = (double)o->rate_max,
				    .packet = WIRE_PACKET,
				    .option = o->control,
				    .ecn = ecn_for_controller(o->ecn)};
	GstPad *before = gst_element_get_static_pad(bin, "send_rtp_sink_0");

	o->wall_offset = realtime_ns() - monotonic_ns();
	o->rate = rate_new(o->kind, &limits, o->control_csv, follow_rate, o);
	rate_watch(o->rate, before, session, o->ssrc, o->headers, o->estimator);
	gst_object_unref(before);
	if (o->carrier != CARRIER_ICMP)
		carried_watch(o, session);
	follow_register(o);
}

void outgoing_start_train(struct outgoing *o)
{
	struct train_params p = {
		.socket = o->socket,
		.to = G_SOCKET_ADDRESS(o->dest),
		.ssrc = o->ssrc,
		.first = o->first_seq,
		.ts = o->ts_offset,
	};

	o->begin = monotonic_ns() / 1e9;
	/* It is H.264, as far as anybody looks. */
	if (o->waiting || o->adaptor || !o->socket || !advice_connected(o->advice))
		return;
	g_atomic_int_set(&o->waiting, 1);
	o->train = train_start(&p, follow_begin, o);
}

void outgoing_move(struct outgoing *o)
{
	/* the old path's delay, and what its routers have granted, say nothing of the new one */
	rate_moved(o->rate);
	g_clear_pointer(&o->advice, advice_free);
	o->daemon = (struct ctl_advice){0};
	returned_move(&o->returned, o->probe_seq);
	follow_advise(o);
	follow_register(o);
}

/* ECN that the path does not treat as it should is not used (RFC 6679 section 7.2). */
static void check_ecn(struct outgoing *o)
{
	const char *fault = o->ecn != ECN_NOT_ECT ? rate_ecn_fault(o->rate) : NULL;

	if (!fault)
		return;
	g_printerr("paqm-streamer: ECN is off from now on: %s\n", fault);
	o->ecn = ECN_NOT_ECT;
	ecn_send_as(o->socket, o->ecn, NULL);
}

void outgoing_tick(struct outgoing *o)
{
	guint64 bytes, left;

	if (o->carrier == CARRIER_PROBE && !g_atomic_int_get(&o->waiting) &&
	    !g_atomic_int_get(&o->stopped))
		carried_probe(o);
	g_object_get(o->pacer, "wire-bytes", &bytes, NULL);
	rate_sent(o->rate, bytes);
	if (o->advised && !returned_rate(&o->returned, (guint64)boottime_ns()))
		follow_advise(o);
	rate_tick(o->rate);
	follow_format(o);
	follow_trains(o);
	check_ecn(o);
	if (o->repair && repair_tick(o->repair, o->granted, o->control_csv, &left))
		follow_left(o, left);
}

char *outgoing_summary(const struct outgoing *o)
{
	GString *text = g_string_new(NULL);
	char *repairs;

	if (o->ecn != ECN_NOT_ECT) {
		const struct ctl_ecn_seen *marks = rate_ecn_seen(o->rate);

		g_string_append_printf(text,
				       "ECN: %" G_GUINT64_FORMAT
				       " packets came back marked, %" G_GUINT64_FORMAT " not\n",
				       marks->ce, marks->ect);
	}
	if (o->repair) {
		repairs = repair_summary(o->repair);
		g_string_append_printf(text, "%s\n", repairs);
		g_free(repairs);
	}
	return g_string_free(text, FALSE);
}

void outgoing_stop(struct outgoing *o)
{
	g_clear_pointer(&o->train, train_free);
	g_clear_pointer(&o->advice, advice_free);
	g_clear_pointer(&o->rate, rate_free);
	g_clear_pointer(&o->repair, repair_free);
}

void outgoing_clear(struct outgoing *o)
{
	outgoing_stop(o);
	for (int k = 0; k < INTERLACE_PHASES; k++)
		gst_clear_object(&o->encoders[k]);
	gst_clear_object(&o->estimator);
	gst_clear_object(&o->pacer);
	gst_clear_object(&o->pay);
	g_clear_pointer(&o->adaptor, adaptor_free);
	g_clear_pointer(&o->split, split_free);
	g_clear_pointer(&o->trains, trains_free);
}
