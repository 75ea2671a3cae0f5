// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer send: source -> paqmh264enc (or another encoder, adaptor.c) ->
 * payloader -> paqmpacer -> rtpbin -> udpsink. The rate comes from a controller (control/), which
 * hears paqmd, what the peer returns of rates that travel with the stream, and the peer's reports;
 * it reaches the encoder at its next picture. The pacer stands before rtpbin, which notes when each
 * packet has left.
 */
#include <gio/gio.h>
#include <glib-unix.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <string.h>

#include "streamer/adaptor.h"
#include "streamer/advice.h"
#include "streamer/carry.h"
#include "streamer/encoded.h"
#include "streamer/gstpaqmh264enc.h"
#include "streamer/gstpaqmpacer.h"
#include "streamer/options.h"
#include "streamer/rate.h"
#include "streamer/repair.h"
#include "streamer/returns.h"
#include "streamer/source.h"
#include "streamer/split.h"
#include "streamer/train.h"
#include "streamer/wire.h"

/* Probes: often until the first answer, for which the first picture waits so long. */
#define FIRST_PROBES_MS 20
#define FIRST_ANSWER_S 1.0
/* Returns of what no router has touched, 100 ms apart: the first may have woken one. */
#define FIRST_UNTOLD 2
/* Key frames that the peer asks for are so far apart at least. */
#define KEY_INTERVAL_NS 500000000
#define OWN_ENCODER "paqmh264enc"
#define PROBE_BYTES (28 + PAQM_PROBE_LEN)
#define GOP_HEADER                                                                                 \
	"gop,t_ns,frames,qp_base,R_bits,r_eff,b_eff,X,overflow,x,e1,e2,R_open,R_temp,Qstar,r_t"
#define FEEDBACK_HEADER "t_ns,router,cause,value,rate_bps"

struct sender {
	/* options */
	char *to, *source, *rate_max_text, *rate_min_text, *bind, *log_dir, *paqmd, *controller;
	gboolean loop_source;
	gint start_frame, gop, qp_min;
	gint64 ssrc, seed;
	gdouble duration;
	guint64 rate_max, rate_min;

	GInetSocketAddress *dest;
	GSocket *rtp, *rtcp;
	guint32 ts_offset;
	gint64 wall_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC */

	GMainLoop *main;
	GstElement *pipeline, *pacer, *bin, *appsrc;
	GstElement *encoder[INTERLACE_PHASES]; /* one, or one per sub-picture */
	int encoders;
	GObject *session;
	int status;

	struct y4m y4m;
	gboolean from_file;
	GThread *feeder;
	GMutex lock;
	GCond cond;
	gboolean stop;
	gint64 first_pts; /* of the first picture, running time */

	char *encoder_text;
	struct adaptor *adaptor; /* of an encoder that is not ours, or NULL */

	const struct ctl_kind *kind;
	struct rate *rate;
	GstElement *estimator; /* what the controller needs, or NULL */
	struct advice *advice;
	struct ctl_advice daemon; /* newest word of paqmd */
	struct train *train;	  /* until the first picture */
	guint16 first_seq;

	struct repair_params repairs;
	gint fec;
	struct repair *repair;
	guint64 granted; /* by the controller, bit/s */

	char *interlace_text;
	enum interlace_mode interlace;
	struct split *split;

	/* rates that travel with the stream */
	char *carrier, *srtp_key_file;
	gboolean element; /* within RTP */
	gboolean probes;  /* beside it, all the time */
	GstBuffer *srtp_key;
	struct paqm_field field; /* as we send it */
	guint32 probe_seq;
	guint32 field_ts; /* of the last RTP packet that got one */
	gboolean field_any;
	struct returned returned;
	guint64 advised; /* by it, bit/s; 0: nothing is in force */
	double begin;
	gint waiting; /* atomic: the first picture waits for the first answer */

	FILE *frames_csv, *gop_csv, *feedback_csv, *control_csv;
	/* counted by the streaming thread */
	guint frames;
	guint64 wire_bytes;
	double interval; /* of the source, s */
	double paced;	 /* of the pacer; streaming thread */
};

static double now_s(void)
{
	return g_get_monotonic_time() / 1e6;
}

/* Wall-clock time of a running time. The offset between the clocks is taken
 * once, so that capture times keep the exact spacing of the frame clock.
 */
static gint64 wall_ns(struct sender *s, GstClockTime running)
{
	return (gint64)(gst_element_get_base_time(s->pipeline) + running) + s->wall_offset;
}

/* What of a rate is left for pictures: the encoder knows RTP, UDP and IP headers only. */
static guint64 picture_rate(const struct sender *s, double rate)
{
	if (s->srtp_key)
		rate *= (double)WIRE_IP_PACKET / (WIRE_IP_PACKET + CARRY_SRTP_BYTES);
	if (s->element)
		rate -= 8.0 * CARRY_ELEMENT_BYTES / s->interval;
	if (s->probes)
		rate -= 8.0 * PROBE_BYTES * 1000 / RATE_TICK_MS;
	return (guint64)MAX(rate, 1000);
}

/* All encoders have their equal parts. */
static void use_rate(struct sender *s, guint64 left)
{
	guint64 rate = picture_rate(s, (double)left) / (guint64)s->encoders;

	if (s->adaptor) {
		adaptor_rate(s->adaptor, rate);
		return;
	}
	for (int k = 0; k < s->encoders; k++)
		g_object_set(s->encoder[k], "rate", MAX(rate, 1000), NULL);
}

static void apply_rate(guint64 rate, gpointer data)
{
	struct sender *s = data;
	guint64 left = rate;

	s->granted = rate;
	if (!s->repair || repair_tick(s->repair, rate, NULL, &left))
		use_rate(s, left);
}

/* Tell the controller the lowest advice in force: of paqmd and of what has been returned. */
static void advise(struct sender *s)
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

static double since_first(const struct sender *s)
{
	return (now_s() - s->begin) * 1000 - FIRST_PROBES_MS;
}

/* The first picture may be coded, @ms after the first packet. */
static void begin_pictures(double ms, gboolean told, gpointer data)
{
	struct sender *s = data;

	if (!g_atomic_int_compare_and_exchange(&s->waiting, 1, 0))
		return;
	printf("begins %.0f ms after its first packet, %s, at %.0f kbit/s\n", ms,
	       told ? "told by a router" : "told by nobody", s->granted / 1e3);
	fflush(stdout);
}

/* Main loop: what the receiver has returned. */
static gboolean on_returned(gpointer data)
{
	gpointer *both = data;
	struct sender *s = both[0];
	gsize len = 0;
	gconstpointer bytes = g_bytes_get_data(both[1], &len);
	guint64 rate = returned_take(&s->returned, bytes, len, (guint64)monotonic_ns());

	if (rate && s->rate) {
		advise(s);
		begin_pictures(since_first(s), TRUE, s);
		if (s->feedback_csv)
			fprintf(s->feedback_csv,
				"%" G_GINT64_FORMAT ",%04x,%s,1,%" G_GUINT64_FORMAT "\n",
				realtime_ns(), s->returned.newest.field.router,
				s->returned.newest.kind == PAQM_RETURN_PROBE ? "probe" : "in-band",
				s->advised);
	} else if (s->returned.untold >= FIRST_UNTOLD) {
		begin_pictures(since_first(s), FALSE, s);
	}
	g_bytes_unref(both[1]);
	g_free(both);
	return G_SOURCE_REMOVE;
}

/* Streaming thread: an RTCP APP packet. */
static void on_app(GObject *session, guint subtype, guint ssrc, const char *name, GstBuffer *data,
		   gpointer user)
{
	gpointer *both;
	GstMapInfo map;

	(void)session;
	(void)ssrc;
	if (subtype != PAQM_APP_SUBTYPE || strncmp(name, "PAQM", 4) || !data ||
	    !gst_buffer_map(data, &map, GST_MAP_READ))
		return;
	both = g_new(gpointer, 2);
	both[0] = user;
	both[1] = g_bytes_new(map.data, map.size);
	gst_buffer_unmap(data, &map);
	g_idle_add(on_returned, both);
}

static void send_probe(struct sender *s)
{
	guint8 p[PAQM_PROBE_LEN];

	p[0] = PAQM_PROBE_FIRST;
	paqm_field_encode(p + 1, &s->field);
	paqm_put32(p + 1 + PAQM_FIELD_LEN, ++s->probe_seq);
	/* one that is lost is no harm: the next one says more */
	g_socket_send_to(s->rtp, G_SOCKET_ADDRESS(s->dest), (const char *)p, sizeof(p), NULL, NULL);
}

static gboolean on_first_probes(gpointer data)
{
	struct sender *s = data;

	if (now_s() - s->begin > FIRST_ANSWER_S)
		begin_pictures(since_first(s), FALSE, s);
	if (g_atomic_int_get(&s->waiting))
		send_probe(s);
	return G_SOURCE_CONTINUE;
}

/* Streaming thread: pictures before the first answer are not coded. */
static GstPadProbeReturn on_raw_picture(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct sender *s = data;

	(void)pad;
	if (s->first_pts < 0)
		s->first_pts = (gint64)GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info));
	return g_atomic_int_get(&s->waiting) ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

/* The first packet of each picture carries a field. */
static GstBuffer *carry_in(struct sender *s, GstBuffer *buf)
{
	GstRTPBuffer rtp = GST_RTP_BUFFER_INIT;
	guint32 ts;

	if (!gst_rtp_buffer_map(buf, GST_MAP_READ, &rtp))
		return buf;
	ts = gst_rtp_buffer_get_timestamp(&rtp);
	gst_rtp_buffer_unmap(&rtp);
	if (s->field_any && ts == s->field_ts)
		return buf;
	s->field_any = TRUE;
	s->field_ts = ts;
	return carry_insert(buf, &s->field);
}

static gboolean carry_in_list(GstBuffer **buf, guint i, gpointer data)
{
	(void)i;
	*buf = carry_in(data, *buf);
	return TRUE;
}

/* Streaming thread: what leaves the payloader. */
static GstPadProbeReturn on_payload(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct sender *s = data;

	(void)pad;
	if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
		GstBufferList *list =
			gst_buffer_list_make_writable(GST_PAD_PROBE_INFO_BUFFER_LIST(info));

		gst_buffer_list_foreach(list, carry_in_list, s);
		info->data = list;
	} else {
		info->data = carry_in(s, GST_PAD_PROBE_INFO_BUFFER(info));
	}
	return GST_PAD_PROBE_OK;
}

static void log_advice(struct sender *s, const struct paqm_client_advice *a)
{
	static const char *const causes[] = {"none", "erf", "ecf", "expired", "lost", "refused"};

	fprintf(s->feedback_csv, "%" G_GINT64_FORMAT ",%s,%s,%.9g,%" G_GUINT64_FORMAT "\n",
		realtime_ns(), a->router[0] ? a->router : "::",
		(guint)a->cause < G_N_ELEMENTS(causes) ? causes[a->cause] : "unknown",
		(double)a->value, (guint64)a->rate_bps);
}

static void on_advice(const struct paqm_client_advice *a, gpointer data)
{
	struct sender *s = data;

	s->daemon = (struct ctl_advice){.rate = (double)a->rate_bps,
					.value = a->value,
					.router = a->router_id,
					.seq = a->seq};
	advise(s);
	if (a->rate_bps)
		train_told(s->train);
	if (s->feedback_csv)
		log_advice(s, a);
}

/* With paqmd: let routers know of the stream before there is a picture. */
static void start_train(struct sender *s)
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
	s->train = train_start(&p, begin_pictures, s);
}

static gboolean on_tick(gpointer data)
{
	struct sender *s = data;
	guint64 bytes, left;

	g_object_get(s->pacer, "wire-bytes", &bytes, NULL);
	rate_sent(s->rate, bytes);
	if (s->advised && !returned_rate(&s->returned, (guint64)monotonic_ns()))
		advise(s);
	if (s->probes && !g_atomic_int_get(&s->waiting))
		send_probe(s);
	rate_tick(s->rate);
	if (s->repair && repair_tick(s->repair, s->granted, s->control_csv, &left))
		use_rate(s, left);
	return G_SOURCE_CONTINUE;
}

/* Streaming thread. */
static void on_picture(GstElement *enc, const GstStructure *p, gpointer data)
{
	struct encoded e = encoded_read(p);
	struct sender *s = data;
	guint32 rtp_ts;
	guint index;
	int phase = 0;

	while (phase < s->encoders - 1 && s->encoder[phase] != enc)
		phase++;
	/* Below the quality floor a picture has two intervals to be sent in. */
	if (e.interval > 0 && e.interval != s->paced) {
		s->paced = e.interval;
		g_object_set(s->pacer, "interval", (guint64)(e.interval * GST_SECOND / s->encoders),
			     NULL);
	}
	if (s->first_pts < 0)
		s->first_pts = (gint64)e.pts;
	index = (guint)(((gint64)e.pts - s->first_pts) / 1e9 / s->interval + 0.5);
	if (s->from_file)
		index = (s->start_frame + index) % s->y4m.frames;
	rtp_ts = s->ts_offset + (guint32)gst_util_uint64_scale_int(e.pts, 90000, GST_SECOND);
	if (s->split)
		rtp_ts = rtp_ts - SPLIT_PHASE(rtp_ts) + (guint32)phase;
	s->frames += phase == 0;
	s->wire_bytes += e.wire;
	encoded_log(s->frames_csv, &e, wall_ns(s, e.pts), rtp_ts, index);
}

struct status {
	struct sender *s;
	guint64 wire_bps;
	guint gop, qp;
};

static gboolean send_status(gpointer data)
{
	struct status *st = data;

	if (st->s->advice)
		advice_status(st->s->advice, st->wire_bps, st->gop, st->qp);
	g_free(st);
	return G_SOURCE_REMOVE;
}

/* Streaming thread. */
static void on_group(GstElement *enc, const GstStructure *g, gpointer data)
{
	static const char *const columns[] = {"r-eff", "b-eff",	 "X",	   "overflow", "x",  "e1",
					      "e2",    "R-open", "R-temp", "Q-star",   "r-t"};
	struct sender *s = data;
	struct status *st;
	guint64 pts = 0;
	int frames = 0, qp = 0;
	double bits = 0;
	guint gop = 0;

	gst_structure_get(g, "pts", G_TYPE_UINT64, &pts, "gop", G_TYPE_UINT, &gop, "frames",
			  G_TYPE_INT, &frames, "qp-base", G_TYPE_INT, &qp, "R", G_TYPE_DOUBLE,
			  &bits, NULL);
	if (s->gop_csv && !s->adaptor) {
		fprintf(s->gop_csv, "%u,%" G_GINT64_FORMAT ",%d,%d,%.0f", gop, wall_ns(s, pts),
			frames, qp, bits);
		for (guint i = 0; i < G_N_ELEMENTS(columns); i++) {
			double v = 0;

			gst_structure_get_double(g, columns[i], &v);
			fprintf(s->gop_csv, ",%.8g", v);
		}
		fprintf(s->gop_csv, "\n");
	}
	if (enc != s->encoder[0])
		return; /* the first speaks for all of equal part */
	bits *= s->encoders;
	st = g_new(struct status, 1);
	*st = (struct status){s, (guint64)(bits / (frames * s->interval)), gop, (guint)qp};
	g_idle_add(send_status, st);
}

/* The frame clock: pictures enter at exact multiples of the interval. */
static gpointer feed(gpointer data)
{
	struct sender *s = data;
	GstClockTime base = gst_element_get_base_time(s->pipeline);
	GstClockTime origin = g_get_monotonic_time() * 1000 - base;
	guint64 limit = s->duration > 0 ? (guint64)(s->duration / s->interval + 0.5) : G_MAXUINT64;

	if (!s->loop_source)
		limit = MIN(limit, s->y4m.frames - s->start_frame);
	for (guint64 n = 0; n < limit; n++) {
		GstClockTime pts =
			origin + gst_util_uint64_scale(n, s->y4m.fps_d * GST_SECOND, s->y4m.fps_n);
		gint64 due = (gint64)((base + pts) / 1000);
		GstBuffer *buf;
		gboolean stop;

		/* Too late for this one: a live source does not wait for its sink. */
		if (g_get_monotonic_time() > due + (gint64)(s->interval * 1e6))
			continue;
		g_mutex_lock(&s->lock);
		while (!s->stop && g_get_monotonic_time() < due)
			g_cond_wait_until(&s->cond, &s->lock, due);
		stop = s->stop;
		g_mutex_unlock(&s->lock);
		if (stop)
			break;
		buf = y4m_frame(&s->y4m, (s->start_frame + n) % s->y4m.frames);
		GST_BUFFER_PTS(buf) = pts;
		GST_BUFFER_DURATION(buf) = (GstClockTime)(s->interval * GST_SECOND);
		if (gst_app_src_push_buffer(GST_APP_SRC(s->appsrc), buf) != GST_FLOW_OK)
			break;
	}
	gst_app_src_end_of_stream(GST_APP_SRC(s->appsrc));
	return NULL;
}

static gboolean on_stop(gpointer data)
{
	struct sender *s = data;

	if (s->from_file) {
		g_mutex_lock(&s->lock);
		s->stop = TRUE;
		g_cond_broadcast(&s->cond);
		g_mutex_unlock(&s->lock);
	} else {
		/* Not at the source: its queues would have to run dry first. */
		for (int k = 0; k < s->encoders; k++) {
			GstPad *pad = gst_element_get_static_pad(s->encoder[k], "sink");

			gst_pad_send_event(pad, gst_event_new_eos());
			gst_object_unref(pad);
		}
	}
	return G_SOURCE_CONTINUE;
}

static gboolean quit(gpointer data)
{
	g_main_loop_quit(((struct sender *)data)->main);
	return G_SOURCE_REMOVE;
}

/* The last packet has gone out. */
static GstPadProbeReturn on_sink_event(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	(void)pad;
	if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS)
		g_idle_add(quit, data);
	return GST_PAD_PROBE_OK;
}

static gboolean on_message(GstBus *bus, GstMessage *msg, gpointer data)
{
	struct sender *s = data;

	(void)bus;
	if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_ERROR) {
		GError *error = NULL;
		char *debug = NULL;

		gst_message_parse_error(msg, &error, &debug);
		g_printerr("paqm-streamer: %s: %s\n", GST_OBJECT_NAME(msg->src), error->message);
		g_debug("%s", debug);
		g_error_free(error);
		g_free(debug);
		s->status = EXIT_RUN;
		g_main_loop_quit(s->main);
	}
	return G_SOURCE_CONTINUE;
}

/* Frame rate and first picture are known once the encoder has caps. */
static void on_caps(GObject *pad, GParamSpec *pspec, gpointer data)
{
	struct sender *s = data;
	GstCaps *caps = gst_pad_get_current_caps(GST_PAD(pad));
	int n = 0, d = 0;

	(void)pspec;
	if (caps &&
	    gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &n, &d) &&
	    n > 0 && d > 0) {
		s->interval = (double)d / n;
		g_object_set(s->pacer, "interval",
			     (guint64)(s->interval * GST_SECOND / s->encoders), NULL);
	}
	if (caps)
		gst_caps_unref(caps);
}

static gboolean is_y4m(const char *path)
{
	return g_str_has_suffix(path, ".y4m");
}

static char *source_description(struct sender *s, GError **error)
{
	char *uri, *text;

	if (s->from_file)
		return g_strdup("appsrc name=source is-live=true format=time max-buffers=4 "
				"leaky-type=downstream");
	if (s->loop_source || s->start_frame) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--loop and --start-frame need a .y4m file as --source");
		return NULL;
	}
	if (!strcmp(s->source, "test"))
		return g_strdup("videotestsrc is-live=true pattern=ball ! "
				"video/x-raw,format=I420,width=640,height=360,framerate=24/1");
	uri = gst_filename_to_uri(s->source, error);
	if (!uri)
		return NULL;
	text = g_strdup_printf("uridecodebin uri=\"%s\" ! videoconvert ! videoscale ! videorate ! "
			       "video/x-raw,format=I420,framerate=24/1 ! identity sync=true",
			       uri);
	g_free(uri);
	return text;
}

/*
 * Encoder and payloader. With --interlace one encoder per part of a picture, each with its part
 * of the rate.
 */
static char *coder_description(struct sender *s)
{
	const char *own = s->encoder_text ? s->encoder_text + strlen(OWN_ENCODER) : "";
	char *options, *encoders, *text;

	if (s->adaptor)
		return adaptor_text(s->adaptor);
	options = g_strdup_printf("gop=%d qp-min=%d %s rate-max=%" G_GUINT64_FORMAT "%s", s->gop,
				  s->qp_min, own, s->rate_max / (guint64)s->encoders,
				  /* a key picture per group: the way back for who has lost one */
				  s->interlace ? " refresh=idr floor-qp=52" : "");
	encoders = s->interlace ? split_elements(s->interlace, options)
				: g_strdup_printf(OWN_ENCODER " %s name=enc0 ! ", options);
	text = g_strdup_printf("%srtph264pay name=pay pt=96 config-interval=0 aggregate-mode=none",
			       encoders);
	g_free(options);
	g_free(encoders);
	return text;
}

static gboolean build(struct sender *s, GRand *rand, GError **error)
{
	char *source = source_description(s, error), *coder, *host, *text, *repairs;
	GError *wrong = NULL;
	GstElement *sink, *pay, *rtcp_sink, *rtcp_src, *first;
	guint pt = 0;
	guint16 port = g_inet_socket_address_get_port(s->dest);
	GstPad *pad;
	gboolean ok;

	if (!source)
		return FALSE;
	host = address_host(s->dest);
	s->encoders = s->interlace ? interlace_phases(s->interlace) : 1;
	coder = coder_description(s);
	repairs = repair_elements(&s->repairs);
	s->ts_offset = g_rand_int(rand);
	text = g_strdup_printf(
		"rtpbin name=bin rtp-profile=avpf %s ! "
		"%s mtu=%d ! %spaqmpacer name=pacer ! %s%sbin.send_rtp_sink_0 %s "
		"bin.send_rtp_src_0 ! %s "
		"udpsink name=rtp host=%s port=%u sync=false async=false close-socket=false "
		"bin.send_rtcp_src_0 ! %s "
		"udpsink name=rtcp host=%s port=%u sync=false async=false close-socket=false "
		"udpsrc name=rtcpin close-socket=false caps=application/x-%s ! %s "
		"bin.recv_rtcp_sink_0",
		source, coder, WIRE_RTP_MTU, repairs, s->kind->element ? s->kind->element : "",
		s->kind->element ? " name=estimator ! " : "",
		s->srtp_key ? "srtpenc name=srtp srtpdec name=srtpin" : "",
		s->srtp_key ? "srtp.rtp_sink_0 srtp.rtp_src_0 !" : "", host, port,
		s->srtp_key ? "srtp.rtcp_sink_0 srtp.rtcp_src_0 !" : "", host, port + 1,
		s->srtp_key ? "srtcp" : "rtcp",
		s->srtp_key ? "srtpin.rtcp_sink srtpin.rtcp_src !" : "");
	s->pipeline = gst_parse_launch(text, &wrong);
	g_free(text);
	g_free(source);
	g_free(coder);
	g_free(repairs);
	g_free(host);
	if (wrong && s->encoder_text)
		g_set_error(error, USAGE_ERROR, 0, "--encoder '%s': %s", s->encoder_text,
			    wrong->message);
	else if (wrong)
		g_propagate_error(error, g_steal_pointer(&wrong));
	g_clear_error(&wrong);
	if (!s->pipeline || (error && *error))
		return FALSE;

	if (s->srtp_key) {
		static const char *const names[] = {"srtp", "srtpin"};

		for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
			GstElement *e = gst_bin_get_by_name(GST_BIN(s->pipeline), names[i]);

			carry_use_key(e, s->srtp_key);
			gst_object_unref(e);
		}
	}
	for (int k = 0; k < s->encoders; k++) {
		char name[8];

		g_snprintf(name, sizeof(name), s->adaptor ? "enc" : "enc%d", k);
		s->encoder[k] = gst_bin_get_by_name(GST_BIN(s->pipeline), name);
		g_object_set(s->encoder[k], "min-force-key-unit-interval", (guint64)KEY_INTERVAL_NS,
			     NULL);
		if (s->adaptor)
			continue;
		g_signal_connect(s->encoder[k], "picture", G_CALLBACK(on_picture), s);
		g_signal_connect(s->encoder[k], "group", G_CALLBACK(on_group), s);
	}
	s->pacer = gst_bin_get_by_name(GST_BIN(s->pipeline), "pacer");
	if (s->repairs.rtx || s->repairs.fec) {
		s->repairs.ssrc = (guint32)s->ssrc;
		do
			s->repairs.rtx_ssrc = g_rand_int(rand);
		while (s->repairs.rtx_ssrc == s->repairs.ssrc);
		s->repair = repair_new(GST_BIN(s->pipeline), s->pacer, &s->repairs);
	}
	first = s->interlace ? gst_bin_get_by_name(GST_BIN(s->pipeline), "split")
			     : gst_object_ref(s->encoder[0]);
	pad = gst_element_get_static_pad(first, "sink");
	gst_object_unref(first);
	g_signal_connect(pad, "notify::caps", G_CALLBACK(on_caps), s);
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_raw_picture, s, NULL);
	gst_object_unref(pad);

	pay = gst_bin_get_by_name(GST_BIN(s->pipeline), "pay");
	g_object_get(pay, "pt", &pt, NULL);
	if (pt != VIDEO_PT && s->repair) {
		g_set_error(error, USAGE_ERROR, 0, "--rtx and --fec need an encoder of H.264");
		gst_object_unref(pay);
		return FALSE;
	}
	if (s->adaptor)
		adaptor_watch(s->adaptor, s->encoder[0], pay, on_picture, on_group, s);
	s->first_seq = g_rand_int(rand) & 0x7fff;
	g_object_set(pay, "ssrc", (guint)s->ssrc, "timestamp-offset", s->ts_offset, "seqnum-offset",
		     (gint)s->first_seq, NULL);
	if (s->interlace)
		s->split = split_new(GST_BIN(s->pipeline), s->interlace, (guint)s->gop, pay);
	ok = rate_number_packets(pay, error);
	if (s->element) {
		pad = gst_element_get_static_pad(pay, "src");
		gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST,
				  on_payload, s, NULL);
		gst_object_unref(pad);
	}
	gst_object_unref(pay);
	if (s->element || s->probes) { /* nobody who has not seen the stream can know it */
		s->returned.nonce = g_rand_int(rand);
		/* above every router's rate, so that each that speaks shows */
		s->field = (struct paqm_field){.rate = paqm_f32_encode(PAQM_VALUE_MAX, 0),
					       .nonce = s->returned.nonce};
	}
	if (!ok)
		return FALSE;

	sink = gst_bin_get_by_name(GST_BIN(s->pipeline), "rtp");
	g_object_set(sink, "socket", s->rtp, NULL);
	pad = gst_element_get_static_pad(sink, "sink");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_sink_event, s, NULL);
	gst_object_unref(pad);
	gst_object_unref(sink);
	rtcp_sink = gst_bin_get_by_name(GST_BIN(s->pipeline), "rtcp");
	g_object_set(rtcp_sink, "socket", s->rtcp, NULL);
	gst_object_unref(rtcp_sink);
	rtcp_src = gst_bin_get_by_name(GST_BIN(s->pipeline), "rtcpin");
	g_object_set(rtcp_src, "socket", s->rtcp, NULL);
	gst_object_unref(rtcp_src);

	s->bin = gst_bin_get_by_name(GST_BIN(s->pipeline), "bin");
	g_signal_emit_by_name(s->bin, "get-internal-session", 0, &s->session);
	/* It would propose a source of its own to the payloader, and paqmd know another. */
	g_object_set(s->session, "internal-ssrc", (guint)s->ssrc, "rtcp-min-interval",
		     (guint64)RTCP_INTERVAL, NULL);
	if (s->element || s->probes)
		g_signal_connect(s->session, "on-app-rtcp", G_CALLBACK(on_app), s);
	s->estimator = gst_bin_get_by_name(GST_BIN(s->pipeline), "estimator");
	if (s->estimator)
		g_object_set(s->estimator, "min-bitrate", (guint)s->rate_min, "max-bitrate",
			     (guint)s->rate_max, "estimated-bitrate",
			     (guint)(CTL_START_SHARE * s->rate_max), NULL);

	if (s->from_file) {
		GstCaps *caps = y4m_caps(&s->y4m);

		s->appsrc = gst_bin_get_by_name(GST_BIN(s->pipeline), "source");
		g_object_set(s->appsrc, "caps", caps, NULL);
		gst_caps_unref(caps);
	}
	return TRUE;
}

/* RTP on an even or given port, RTCP on the next one. */
static gboolean open_sockets(struct sender *s, GError **error)
{
	GInetSocketAddress *local = NULL;
	GInetAddress *addr;
	guint16 port = 0;

	if (s->bind) {
		local = parse_address(s->bind, 65535, error);
		if (!local)
			return FALSE;
		addr = g_object_ref(g_inet_socket_address_get_address(local));
		port = g_inet_socket_address_get_port(local);
		if (port == 65535)
			port = 0;
		g_object_unref(local);
	} else {
		addr = g_inet_address_new_any(
			g_inet_address_get_family(g_inet_socket_address_get_address(s->dest)));
	}
	for (int attempt = 0; attempt < 16; attempt++) {
		s->rtp = open_socket(addr, port, error);
		if (!s->rtp)
			break;
		s->rtcp = open_socket(addr, socket_port(s->rtp) + 1, port ? error : NULL);
		if (s->rtcp || port)
			break;
		g_clear_object(&s->rtp);
	}
	g_object_unref(addr);
	if (s->rtp && s->rtcp)
		return TRUE;
	if (error && !*error)
		g_set_error(
			error, USAGE_ERROR, 0,
			"no two neighbouring UDP ports are free; name one with --bind ADDR:PORT");
	return FALSE;
}

static void register_flow(struct sender *s)
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

	if (!s->paqmd || strcmp(s->paqmd, "none"))
		s->advice = advice_new(s->paqmd, &flow, on_advice, s);
	g_clear_object(&local);
}

static gboolean choose_controller(struct sender *s, GError **error)
{
	GString *names;

	s->kind = ctl_find(s->controller ? s->controller : ctl_kinds[0]->name);
	if (s->kind)
		return TRUE;
	names = g_string_new(NULL);
	for (guint i = 0; ctl_kinds[i]; i++)
		g_string_append_printf(names, "\n  %-6s %s", ctl_kinds[i]->name,
				       ctl_kinds[i]->summary);
	g_set_error(error, USAGE_ERROR, 0, "there is no controller '%s'; there are%s",
		    s->controller, names->str);
	g_string_free(names, TRUE);
	return FALSE;
}

/* Ours, whatever properties it is given, or one that needs an adaptor. */
static gboolean choose_encoder(struct sender *s, GError **error)
{
	gsize n = strlen(OWN_ENCODER);

	if (s->interlace && s->encoder_text) {
		g_set_error(error, USAGE_ERROR, 0, "--interlace does not go with --encoder");
		return FALSE;
	}
	if (!s->encoder_text ||
	    (!strncmp(s->encoder_text, OWN_ENCODER, n) && strchr(" \t", s->encoder_text[n])))
		return TRUE;
	s->adaptor = adaptor_new(s->encoder_text, (guint)s->gop, error);
	return s->adaptor != NULL;
}

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

static gboolean parse(struct sender *s, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"to", 0, 0, G_OPTION_ARG_STRING, &s->to, "Where to send; RTCP on PORT+1",
		 "ADDR:PORT"},
		{"source", 0, 0, G_OPTION_ARG_FILENAME, &s->source,
		 "A y4m file, another video file, or test", "FILE|test"},
		{"loop", 0, 0, G_OPTION_ARG_NONE, &s->loop_source,
		 "Begin the file again at its end", NULL},
		{"start-frame", 0, 0, G_OPTION_ARG_INT, &s->start_frame,
		 "Begin with this picture of the file", "N"},
		{"rate-max", 0, 0, G_OPTION_ARG_STRING, &s->rate_max_text,
		 "Highest rate, headers included (3mbit)", "BPS"},
		{"rate-min", 0, 0, G_OPTION_ARG_STRING, &s->rate_min_text,
		 "Lowest rate (300kbit, or rate-max if that is lower)", "BPS"},
		{"bind", 0, 0, G_OPTION_ARG_STRING, &s->bind, "Local address and port",
		 "ADDR[:PORT]"},
		{"ssrc", 0, 0, G_OPTION_ARG_INT64, &s->ssrc, "RTP source identifier", "N"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &s->duration, "Stop after so long", "S"},
		{"gop", 0, 0, G_OPTION_ARG_INT, &s->gop, "Pictures per quantizer group (12)", "N"},
		{"qp-min", 0, 0, G_OPTION_ARG_INT, &s->qp_min, "Finest quantizer (4)", "N"},
		{"encoder", 0, 0, G_OPTION_ARG_STRING, &s->encoder_text,
		 "GStreamer encoder with a live bit rate, and properties of it (" OWN_ENCODER ")",
		 "ELEMENT"},
		{"controller", 0, 0, G_OPTION_ARG_STRING, &s->controller,
		 "What sets the rate (auto); a wrong name lists them", "NAME"},
		{"seed", 0, 0, G_OPTION_ARG_INT64, &s->seed, "Makes all random choices repeatable",
		 "N"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &s->log_dir,
		 "Write frames.csv, gop.csv, feedback.csv and control.csv there", "DIR"},
		{"paqmd", 0, 0, G_OPTION_ARG_FILENAME, &s->paqmd,
		 "Socket of the feedback daemon, or none ($PAQM_SOCKET, /run/paqmd/client.sock)",
		 "PATH|none"},
		{"carrier", 0, 0, G_OPTION_ARG_STRING, &s->carrier,
		 "Let routers write rates into the stream: in RTP headers, in probes beside it, "
		 "or (icmp) not at all",
		 "icmp|in-band|probe"},
		{"interlace", 0, 0, G_OPTION_ARG_STRING, &s->interlace_text,
		 "Code parts of each picture apart: what is lost can be interpolated",
		 "rows|checkerboard|quarters"},
		{"rtx", 0, 0, G_OPTION_ARG_NONE, &s->repairs.rtx,
		 "Send again what the receiver misses, within the rate", NULL},
		{"fec", 0, 0, G_OPTION_ARG_INT, &s->fec,
		 "Add so many per cent of packets that correct losses, within the rate", "PERCENT"},
		{"srtp-key", 0, 0, G_OPTION_ARG_FILENAME, &s->srtp_key_file,
		 "Encrypt with the key in FILE, 60 hexadecimal digits", "FILE"},
		{0},
	};

	if (!parse_options(NULL, "Sends live video at the rate the network grants.", entries, &argc,
			   &argv, error))
		return FALSE;
	if (!s->to || !s->source) {
		g_set_error(error, USAGE_ERROR, 0, "%s is missing; see paqm-streamer send --help",
			    s->to ? "--source" : "--to");
		return FALSE;
	}
	s->dest = parse_address(s->to, 0, error);
	if (!s->dest ||
	    !parse_rate(s->rate_max_text ? s->rate_max_text : "3mbit", &s->rate_max, error))
		return FALSE;
	if (s->rate_min_text) {
		if (!parse_rate(s->rate_min_text, &s->rate_min, error))
			return FALSE;
	} else {
		s->rate_min = MIN(300000, s->rate_max);
	}
	if (s->rate_min > s->rate_max || s->gop < 1 || s->gop > 600 || s->qp_min < 0 ||
	    s->qp_min > 51 || s->start_frame < 0 || s->duration < 0 || s->ssrc > G_MAXUINT32) {
		g_set_error(error, USAGE_ERROR, 0,
			    "an option is out of range: --rate-min must not exceed --rate-max, "
			    "--gop 1 to 600, --qp-min 0 to 51, --ssrc 32 bit, others not negative");
		return FALSE;
	}
	if (s->fec < 0 || s->fec > FEC_MOST) {
		g_set_error(error, USAGE_ERROR, 0, "--fec %d: must be 0 to %d per cent", s->fec,
			    FEC_MOST);
		return FALSE;
	}
	s->repairs.fec = (guint)s->fec;
	if (s->interlace_text && !(s->interlace = interlace_find(s->interlace_text))) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--interlace %s: must be rows, checkerboard or quarters",
			    s->interlace_text);
		return FALSE;
	}
	if (!choose_controller(s, error))
		return FALSE;
	s->element = s->carrier && !strcmp(s->carrier, "in-band");
	s->probes = s->carrier && !strcmp(s->carrier, "probe");
	if (s->carrier && !s->element && !s->probes && strcmp(s->carrier, "icmp")) {
		g_set_error(error, USAGE_ERROR, 0, "--carrier %s: must be icmp, in-band or probe",
			    s->carrier);
		return FALSE;
	}
	if (s->element && s->srtp_key_file) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--carrier in-band does not go with --srtp-key: routers cannot write "
			    "into headers that are authenticated; use --carrier probe");
		return FALSE;
	}
	if (s->element && s->interlace) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--carrier in-band does not go with --interlace; use --carrier probe");
		return FALSE;
	}
	if (s->element && s->fec) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--carrier in-band does not go with --fec: routers change headers that "
			    "have been protected; use --carrier probe");
		return FALSE;
	}
	s->waiting = s->element || s->probes;
	s->from_file = strcmp(s->source, "test") && is_y4m(s->source);
	if (!s->from_file)
		return TRUE;
	if (!y4m_open(&s->y4m, s->source, error))
		return FALSE;
	s->interval = (double)s->y4m.fps_d / s->y4m.fps_n;
	if (s->interlace && (s->y4m.width % INTERLACE_GRAIN || s->y4m.height % INTERLACE_GRAIN)) {
		g_set_error(error, USAGE_ERROR, 0,
			    "%s: --interlace needs a width and a height that are multiples of %d",
			    s->source, INTERLACE_GRAIN);
		return FALSE;
	}
	if (!s->loop_source && (guint)s->start_frame >= s->y4m.frames) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--start-frame %d is past the end: %s has %u pictures", s->start_frame,
			    s->source, s->y4m.frames);
		return FALSE;
	}
	s->start_frame %= s->y4m.frames;
	return TRUE;
}

static gboolean open_logs(struct sender *s, GError **error)
{
	if (!s->log_dir)
		return TRUE;
	s->frames_csv = open_log(s->log_dir, "frames.csv", ENCODED_HEADER, error);
	s->gop_csv = s->frames_csv ? open_log(s->log_dir, "gop.csv", GOP_HEADER, error) : NULL;
	s->feedback_csv =
		s->gop_csv ? open_log(s->log_dir, "feedback.csv", FEEDBACK_HEADER, error) : NULL;
	s->control_csv =
		s->feedback_csv ? open_log(s->log_dir, "control.csv", RATE_HEADER, error) : NULL;
	return s->control_csv != NULL;
}

static void run(struct sender *s)
{
	guint tick, sigint, sigterm, timer = 0, first = 0, watch;
	GstBus *bus = gst_element_get_bus(s->pipeline);
	struct ctl_params limits = {(double)s->rate_min, (double)s->rate_max, WIRE_IP_PACKET};
	char *repairs = NULL;
	GstPad *before;

	s->main = g_main_loop_new(NULL, FALSE);
	watch = gst_bus_add_watch(bus, on_message, s);
	s->wall_offset = realtime_ns() - monotonic_ns();
	s->rate = rate_new(s->kind, &limits, s->control_csv, apply_rate, s);
	before = gst_element_get_static_pad(s->bin, "send_rtp_sink_0");
	rate_watch(s->rate, before, s->session, (guint32)s->ssrc, WIRE_HEADERS, s->estimator);
	gst_object_unref(before);
	register_flow(s);
	sigint = g_unix_signal_add(SIGINT, on_stop, s);
	sigterm = g_unix_signal_add(SIGTERM, on_stop, s);
	tick = g_timeout_add(RATE_TICK_MS, on_tick, s);
	s->begin = now_s();
	if (s->waiting)
		first = g_timeout_add(FIRST_PROBES_MS, on_first_probes, s);
	start_train(s);
	if (gst_element_set_state(s->pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
		s->status = EXIT_RUN;
		g_idle_add(quit, s);
	} else if (s->from_file) {
		gst_element_get_state(s->pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
		s->feeder = g_thread_new("frame-clock", feed, s);
	} else if (s->duration > 0) {
		timer = g_timeout_add((guint)(s->duration * 1000), on_stop, s);
	}
	g_main_loop_run(s->main);

	if (s->feeder) {
		on_stop(s);
		g_thread_join(s->feeder);
	}
	gst_element_set_state(s->pipeline, GST_STATE_NULL);
	if (timer)
		g_source_remove(timer);
	if (first)
		g_source_remove(first);
	g_source_remove(tick);
	g_source_remove(sigint);
	g_source_remove(sigterm);
	g_source_remove(watch);
	train_free(s->train);
	s->train = NULL;
	advice_free(s->advice);
	s->advice = NULL;
	rate_free(s->rate);
	s->rate = NULL;
	if (s->repair) {
		repairs = repair_summary(s->repair);
		repair_free(s->repair);
		s->repair = NULL;
	}
	/* Status messages of the last group may still be queued. */
	while (g_main_context_iteration(NULL, FALSE))
		;
	gst_object_unref(bus);
	printf("sent %u pictures, %.0f kbit/s on the wire\n", s->frames,
	       s->frames ? s->wire_bytes * 8 / (s->frames * s->interval) / 1000 : 0.0);
	if (repairs)
		printf("%s\n", repairs);
	g_free(repairs);
}

int cmd_send(int argc, char **argv)
{
	struct sender s = {.gop = 12,
			   .qp_min = 4,
			   .ssrc = -1,
			   .seed = -1,
			   .first_pts = -1,
			   .interval = 1.0 / 24};
	GError *error = NULL;
	GRand *rand = NULL;

	g_set_prgname("paqm-streamer send");
	g_mutex_init(&s.lock);
	g_cond_init(&s.cond);
	if (!parse(&s, argc, argv, &error))
		goto out;
	/* rtpbin draws names and intervals from GLib's generator. */
	if (s.seed >= 0)
		g_random_set_seed((guint32)s.seed);
	rand = s.seed >= 0 ? g_rand_new_with_seed((guint32)s.seed) : g_rand_new();
	if (s.ssrc < 0)
		s.ssrc = g_rand_int(rand);
	gst_init(NULL, NULL);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	if (s.srtp_key_file && !(s.srtp_key = carry_key(s.srtp_key_file, &error)))
		goto out;
	if (!need_element(s.kind, &error) || !choose_encoder(&s, &error) ||
	    !open_sockets(&s, &error) || !open_logs(&s, &error) || !build(&s, rand, &error))
		goto out;
	printf("sending to %s from port %u, SSRC %u, %.0f to %.0f kbit/s\n", s.to,
	       socket_port(s.rtp), (guint32)s.ssrc, s.rate_min / 1e3, s.rate_max / 1e3);
	fflush(stdout);
	run(&s);
out:
	if (error)
		s.status = report_error(error);
	if (!close_log(s.control_csv, "control.csv") | !close_log(s.frames_csv, "frames.csv") |
	    !close_log(s.gop_csv, "gop.csv") | !close_log(s.feedback_csv, "feedback.csv"))
		s.status = EXIT_RUN;
	if (rand)
		g_rand_free(rand);
	g_clear_object(&s.session);
	gst_clear_object(&s.appsrc);
	for (int k = 0; k < INTERLACE_PHASES; k++)
		gst_clear_object(&s.encoder[k]);
	gst_clear_object(&s.estimator);
	repair_free(s.repair);
	gst_clear_object(&s.pacer);
	gst_clear_object(&s.bin);
	gst_clear_object(&s.pipeline);
	if (s.main)
		g_main_loop_unref(s.main);
	g_clear_object(&s.rtp);
	g_clear_object(&s.rtcp);
	g_clear_object(&s.dest);
	adaptor_free(s.adaptor);
	y4m_close(&s.y4m);
	g_free(s.to);
	g_free(s.source);
	g_free(s.rate_max_text);
	g_free(s.rate_min_text);
	g_free(s.bind);
	g_free(s.log_dir);
	g_free(s.paqmd);
	g_free(s.controller);
	g_free(s.encoder_text);
	g_free(s.carrier);
	g_free(s.srtp_key_file);
	g_free(s.interlace_text);
	split_free(s.split);
	gst_clear_buffer(&s.srtp_key);
	g_mutex_clear(&s.lock);
	g_cond_clear(&s.cond);
	return s.status;
}
