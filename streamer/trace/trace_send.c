// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer send --trace: sends a quality ladder live. Each flow picks a
 * quantizer per group of pictures (RA-SVBR) from the same allowance as a
 * stream with an encoder, then takes the pictures from the ladder. One thread
 * serves all flows of a process.
 */
#include <errno.h>
#include <gst/rtp/gstrtcpbuffer.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "streamer/outgoing/advice.h"
#include "streamer/control/control.h"
#include "streamer/options.h"
#include "streamer/encoder/rasvbr.h"
#include "streamer/trace/ladder.h"
#include "streamer/trace/rtph264.h"
#include "streamer/trace/trace.h"
#include "streamer/rtp/wire.h"

#define TICK_NS (50 * G_GINT64_CONSTANT(1000000))
#define Q_REF 31 /* spec: parity with the thesis' quantizer 8 */
#define RTCP_SIZE 512
#define GRID_NS 1000000
#define NEVER G_MAXINT64
#define TX_HEADER "seq,t_ns,frame,src_frame,frag,nfrag,wire_bytes,q,type"
#define GOP_HEADER                                                                                 \
	"gop,t_ns,frames,src_frame,q,R_bits,r_eff,b_eff,X,overflow,x,e1,e2,R_open,R_temp,Qstar,"   \
	"r_t"
#define FEEDBACK_HEADER "t_ns,cause,value,rate_bps"

struct trace_sender;

struct trace_flow {
	struct trace_sender *s;
	guint index;
	int rtp, rtcp;
	struct trace_watch watch;
	guint32 ssrc, ts_offset;
	guint16 seq;
	guint64 packets, octets;
	guint64 wire; /* bytes that the controller has not been told of */

	struct ctl *ctl;
	double rate; /* bit/s in force */

	struct ra_state ra;
	struct ra_params ra_params;
	guint gop_number;
	guint gop_first; /* first picture of the group, in the clip */
	int q;

	guint frame;	  /* pictures sent */
	GArray *pieces;	  /* of the picture under way */
	guint piece;	  /* next of them */
	gint64 frame_ns;  /* when the picture under way began */
	gint64 report_ns; /* when the next sender report is due */
	gint64 due;	  /* when there is anything to do; NEVER: it has ended */

	FILE *tx_csv, *gop_csv, *feedback_csv;
};

struct trace_sender {
	char *to, *ladder_dir, *controller, *log_dir, *paqmd, *rate_max_text, *rate_min_text;
	gint flows, loops;
	gdouble duration, spread, beta;
	gint64 seed;
	gboolean burst, a_priori;
	guint64 rate_max, rate_min;

	struct ladder ladder;
	const struct ctl_kind *kind;
	struct ctl_params ctl_params;
	GInetSocketAddress *dest;
	guint headers; /* bytes around the payload of each packet */
	struct trace_flow flow[TRACE_FLOWS_MAX];
	guint64 *open_bits; /* of each group at the reference quantizer */
	GRand *rand;
	struct trace_loop loop;
	/* Advice comes in a thread of its own, which alone runs GLib's main loop. */
	GMainLoop *hearing;
	struct advice *advice; /* NULL: none is wanted */
	GMutex lock;	       /* of the controllers */
	gint64 interval_ns, begin_ns, tick_ns;
	gint64 wall_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	guint running;
	guint64 refused; /* packets that the kernel did not take */
	int status;
};

static double seconds(gint64 ns)
{
	return ns / 1e9;
}

static double group_time(const struct trace_sender *s)
{
	return seconds(s->interval_ns) * s->ladder.gop;
}

static void use_rate(struct trace_flow *f, gint64 now)
{
	double rate = ctl_rate(f->ctl, seconds(now));

	if (rate == f->rate)
		return;
	f->rate = rate;
	ra_feedback(&f->ra, &f->ra_params, rate * group_time(f->s));
}

static void take_advice(struct trace_flow *f, const struct paqm_client_advice *a)
{
	struct ctl_advice advice = advice_control(a);
	gint64 now = monotonic_ns();

	ctl_advise(f->ctl, seconds(now), &advice);
	use_rate(f, now);
	if (f->feedback_csv)
		fprintf(f->feedback_csv, "%" G_GINT64_FORMAT ",%s,%.9g,%" G_GUINT64_FORMAT "\n",
			now + f->s->wall_offset, advice_cause(a), (double)a->value,
			(guint64)a->rate_bps);
}

static void on_advice(const struct paqm_client_advice *a, gpointer data)
{
	struct trace_flow *f = data;

	g_mutex_lock(&f->s->lock);
	take_advice(f, a);
	g_mutex_unlock(&f->s->lock);
}

/* Round trip of a report, RFC 3550 section 6.4.1; NAN: unknown. */
static double round_trip(const struct trace_flow *f, gint64 now, guint32 lsr, guint32 dlsr)
{
	guint32 then = (guint32)(trace_ntp(now + f->s->wall_offset) >> 16);

	return lsr ? (then - lsr - dlsr) / 65536.0 : NAN;
}

/* Receiver reports about this flow. */
static void on_rtcp(gpointer data)
{
	struct trace_flow *f = data;
	gint64 now = monotonic_ns();
	guint8 packet[1500];
	ssize_t n;

	g_mutex_lock(&f->s->lock);
	while ((n = recv(f->rtcp, packet, sizeof(packet), 0)) > 0) {
		GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
		GstBuffer *buf;
		GstRTCPPacket p;

		if (!gst_rtcp_buffer_validate_data_reduced(packet, (guint)n))
			continue;
		buf = gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, packet, sizeof(packet),
						  0, (gsize)n, NULL, NULL);
		gst_rtcp_buffer_map(buf, GST_MAP_READ, &rtcp);
		for (gboolean more = gst_rtcp_buffer_get_first_packet(&rtcp, &p); more;
		     more = gst_rtcp_packet_move_to_next(&p)) {
			if (gst_rtcp_packet_get_type(&p) != GST_RTCP_TYPE_RR)
				continue;
			for (guint i = 0; i < gst_rtcp_packet_get_rb_count(&p); i++) {
				guint32 ssrc, ext, jitter, lsr, dlsr;
				guint8 lost;
				gint32 total;

				gst_rtcp_packet_get_rb(&p, i, &ssrc, &lost, &total, &ext, &jitter,
						       &lsr, &dlsr);
				if (ssrc == f->ssrc)
					ctl_receiver_report(f->ctl, seconds(now), lost / 256.0,
							    round_trip(f, now, lsr, dlsr));
			}
		}
		gst_rtcp_buffer_unmap(&rtcp);
		gst_buffer_unref(buf);
	}
	g_mutex_unlock(&f->s->lock);
}

static void send_report(struct trace_flow *f, gint64 now)
{
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	GstBuffer *buf = gst_rtcp_buffer_new(RTCP_SIZE);
	gint64 wall = now + f->s->wall_offset;
	guint32 ts;
	GstRTCPPacket p;
	GstMapInfo map;
	char *cname;

	/* the RTP time of now; exact at the pictures' times */
	ts = f->ts_offset + (guint32)((now - f->s->begin_ns) / 1000 * TRACE_CLOCK / 1000000);
	gst_rtcp_buffer_map(buf, GST_MAP_READWRITE, &rtcp);
	gst_rtcp_buffer_add_packet(&rtcp, GST_RTCP_TYPE_SR, &p);
	gst_rtcp_packet_sr_set_sender_info(&p, f->ssrc, trace_ntp(wall), ts, (guint32)f->packets,
					   (guint32)f->octets);
	cname = g_strdup_printf("trace%u@%08x", f->index, f->ssrc);
	gst_rtcp_buffer_add_packet(&rtcp, GST_RTCP_TYPE_SDES, &p);
	gst_rtcp_packet_sdes_add_item(&p, f->ssrc);
	gst_rtcp_packet_sdes_add_entry(&p, GST_RTCP_SDES_CNAME, (guint8)strlen(cname),
				       (guint8 *)cname);
	g_free(cname);
	gst_rtcp_buffer_unmap(&rtcp);
	if (gst_buffer_map(buf, &map, GST_MAP_READ)) {
		if (send(f->rtcp, map.data, map.size, 0) < 0)
			f->s->refused++;
		gst_buffer_unmap(buf, &map);
	}
	gst_buffer_unref(buf);
	f->report_ns += REPORT_INTERVAL;
}

/* Which picture of the clip the flow is at. */
static guint source_frame(const struct trace_flow *f)
{
	return f->gop_first + f->frame % f->s->ladder.gop;
}

static void send_piece(struct trace_flow *f, gint64 now)
{
	const struct h264_piece *piece = &g_array_index(f->pieces, struct h264_piece, f->piece);
	gboolean marker = f->piece + 1 == f->pieces->len;
	guint32 ts = f->ts_offset + (guint32)gst_util_uint64_scale(
					    f->frame, (guint64)TRACE_CLOCK * f->s->ladder.fps_d,
					    (guint64)f->s->ladder.fps_n);
	guint8 head[RTP_HEADER + 2] = {0x80, (guint8)(TRACE_PT | (marker ? 0x80 : 0))};
	gsize head_len = RTP_HEADER + piece->head_len;
	struct iovec iov[2] = {{head, head_len}, {(void *)piece->data, piece->len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	GST_WRITE_UINT16_BE(head + 2, f->seq);
	GST_WRITE_UINT32_BE(head + 4, ts);
	GST_WRITE_UINT32_BE(head + 8, f->ssrc);
	memcpy(head + RTP_HEADER, piece->head, piece->head_len);
	/* A full queue on the way out loses packets; so it would for any sender. */
	if (sendmsg(f->rtp, &msg, 0) < 0)
		f->s->refused++;
	if (f->tx_csv)
		fprintf(f->tx_csv,
			"%u,%" G_GINT64_FORMAT ",%u,%u,%u,%u,%" G_GSIZE_FORMAT ",%d,%c\n", f->seq,
			now + f->s->wall_offset, f->frame, source_frame(f), f->piece,
			f->pieces->len, f->s->headers + h264_piece_size(piece), f->q,
			f->frame % f->s->ladder.gop ? 'P' : 'I');
	f->seq++;
	f->packets++;
	f->octets += h264_piece_size(piece);
	f->wire += f->s->headers + h264_piece_size(piece);
	f->piece++;
}

/* The next group: where in the clip, and at which quantizer. False: the clip has ended. */
static gboolean next_group(struct trace_flow *f, gint64 now)
{
	struct trace_sender *s = f->s;
	double open_bits;
	struct ra_group g;

	if (f->frame) {
		guint done = f->gop_first;

		f->gop_first += s->ladder.gop;
		if (f->gop_first == s->ladder.frames) {
			if (!f->index && !s->loops)
				return FALSE;
			/* Not to the beginning: looping would show in the traffic as a period. */
			f->gop_first =
				(guint)g_rand_int_range(s->rand, 0,
							(gint)(s->ladder.frames / s->ladder.gop)) *
				s->ladder.gop;
		}
		open_bits = s->a_priori ? (double)s->open_bits[f->gop_first / s->ladder.gop]
					: ra_open_bits(&f->ra_params, f->ra.sent, f->ra.q);
		g = ra_group_end(&f->ra, &f->ra_params, open_bits);
		if (f->gop_csv)
			fprintf(f->gop_csv,
				"%u,%" G_GINT64_FORMAT
				",%u,%u,%d,%.0f,%.0f,%.0f,%.0f,%.0f,%.6f,%.6f,%.6f,%.0f,%.0f,%.4f,"
				"%.0f\n",
				f->gop_number, now + s->wall_offset, s->ladder.gop, done, f->q, g.R,
				g.r_eff, g.b_eff, g.X, g.overflow, g.x, g.e1, g.e2, g.R_open,
				g.R_temp, g.q_star, g.r_t);
		f->gop_number++;
	}
	f->q = (int)f->ra.q;
	return TRUE;
}

/* The picture whose time has come. False: there is none any more. */
static gboolean next_picture(struct trace_flow *f, gint64 now)
{
	struct trace_sender *s = f->s;
	double wire = 0;
	guint source;

	if (f->frame % s->ladder.gop == 0 && !next_group(f, now))
		return FALSE;
	source = source_frame(f);
	g_array_set_size(f->pieces, 0);
	h264_cut(ladder_unit(&s->ladder, f->q, source),
		 ladder_frame(&s->ladder, f->q, source)->size, WIRE_PACKET - s->headers, f->pieces);
	f->piece = 0;
	if (!f->pieces->len)
		f->frame++; /* nothing in it to send */
	for (guint i = 0; i < f->pieces->len; i++) {
		const struct h264_piece *piece = &g_array_index(f->pieces, struct h264_piece, i);

		wire += (double)(f->s->headers + h264_piece_size(piece)) * 8;
	}
	ra_frame(&f->ra, wire);
	return TRUE;
}

static void end_flow(struct trace_flow *f)
{
	if (f->due == NEVER)
		return;
	f->due = NEVER;
	if (--f->s->running == 0)
		f->s->loop.stop = TRUE;
}

/* Everything of a flow that is due. */
static void serve(struct trace_flow *f, gint64 now)
{
	struct trace_sender *s = f->s;

	while (f->due <= now) {
		gint64 next_frame = f->frame_ns + s->interval_ns, next_piece;

		if (f->report_ns <= now)
			send_report(f, now);
		if (f->piece < f->pieces->len) {
			send_piece(f, now);
			if (f->piece == f->pieces->len)
				f->frame++;
		} else if (next_frame <= now) {
			f->frame_ns = next_frame;
			if (!next_picture(f, now)) {
				end_flow(f);
				return;
			}
			continue; /* its first packet leaves at once */
		}
		next_piece = s->burst || !f->pieces->len
				     ? f->frame_ns
				     : f->frame_ns + s->interval_ns * f->piece / f->pieces->len;
		f->due = MIN(f->piece < f->pieces->len ? next_piece : f->frame_ns + s->interval_ns,
			     f->report_ns);
	}
}

/* The grid on which packets leave: flows that are due within one step are served together. */
static gint64 on_grid(gint64 t)
{
	return (t + GRID_NS - 1) / GRID_NS * GRID_NS;
}

static void on_timer(gpointer data)
{
	struct trace_sender *s = data;
	gint64 now = monotonic_ns(), next;

	g_mutex_lock(&s->lock);
	if (s->tick_ns <= now) {
		for (gint i = 0; i < s->flows; i++) {
			struct trace_flow *f = &s->flow[i];

			ctl_sent(f->ctl, seconds(now), f->wire);
			f->wire = 0;
			use_rate(f, now);
		}
		s->tick_ns = now + TICK_NS;
	}
	next = s->tick_ns;
	for (gint i = 0; i < s->flows; i++) {
		struct trace_flow *f = &s->flow[i];

		if (s->duration > 0 && now >= s->begin_ns + (gint64)(s->duration * 1e9))
			end_flow(f);
		serve(f, now);
		next = MIN(next, f->due);
	}
	g_mutex_unlock(&s->lock);
	trace_timer_set(&s->loop, on_grid(next));
}

static GInetSocketAddress *address_of(const struct sockaddr_storage *ss, socklen_t len)
{
	return G_INET_SOCKET_ADDRESS(g_socket_address_new_from_native((gpointer)ss, len));
}

static void register_flow(struct trace_flow *f)
{
	struct trace_sender *s = f->s;
	struct sockaddr_storage near = {0}, far = {0};
	socklen_t near_len = sizeof(near), far_len = sizeof(far);
	GInetSocketAddress *from, *to;
	struct advice_flow flow = {
		.ssrc = f->ssrc,
		.floor_bps = s->rate_min,
		.ceil_bps = s->rate_max,
		.gop_s = group_time(s),
		.answer_s = group_time(s), /* a ladder cannot answer earlier */
	};

	if (!s->advice || getsockname(f->rtp, (struct sockaddr *)&near, &near_len) < 0 ||
	    getpeername(f->rtp, (struct sockaddr *)&far, &far_len) < 0)
		return;
	from = address_of(&near, near_len);
	to = address_of(&far, far_len);
	flow.from = g_inet_socket_address_get_address(from);
	flow.from_port = g_inet_socket_address_get_port(from);
	flow.to = g_inet_socket_address_get_address(to);
	flow.to_port = g_inet_socket_address_get_port(to);
	advice_add(s->advice, &flow, on_advice, f);
	g_object_unref(from);
	g_object_unref(to);
}

static gboolean open_logs(struct trace_flow *f, GError **error)
{
	char *dir;

	if (!f->s->log_dir)
		return TRUE;
	dir = g_strdup_printf("%s/flow%03u", f->s->log_dir, f->index);
	f->tx_csv = open_log(dir, "tx.csv", TX_HEADER, error);
	f->gop_csv = f->tx_csv ? open_log(dir, "gop.csv", GOP_HEADER, error) : NULL;
	f->feedback_csv = f->gop_csv ? open_log(dir, "feedback.csv", FEEDBACK_HEADER, error) : NULL;
	g_free(dir);
	return f->feedback_csv != NULL;
}

static gboolean open_flow(struct trace_sender *s, guint index, GError **error)
{
	guint16 port = (guint16)(g_inet_socket_address_get_port(s->dest) + 2 * index);
	struct trace_flow *f = &s->flow[index];
	gint groups = (gint)(s->ladder.frames / s->ladder.gop);

	f->s = s;
	f->index = index;
	f->ssrc = g_rand_int(s->rand);
	f->ts_offset = g_rand_int(s->rand);
	f->seq = (guint16)g_rand_int_range(s->rand, 0, 32768);
	f->pieces = g_array_new(FALSE, FALSE, sizeof(struct h264_piece));
	/* The first flow is the one to be judged: the whole clip, once. */
	f->gop_first = index ? (guint)g_rand_int_range(s->rand, 0, groups) * s->ladder.gop : 0;
	f->rtp = trace_socket(s->dest, port, TRUE, error);
	f->rtcp = f->rtp < 0 ? -1 : trace_socket(s->dest, port + 1, TRUE, error);
	if (f->rtcp < 0 || !open_logs(f, error))
		return FALSE;
	f->watch = (struct trace_watch){on_rtcp, f};
	return trace_loop_add(&s->loop, f->rtcp, &f->watch, error);
}

static void start_flow(struct trace_flow *f)
{
	struct trace_sender *s = f->s;
	gint64 start = s->begin_ns;

	if (f->index)
		start += (gint64)(g_rand_double_range(s->rand, 0, MAX(s->spread, 1e-9)) * 1e9);
	f->ctl = ctl_new(s->kind, &s->ctl_params, seconds(start));
	if (!f->ctl)
		g_error("out of memory");
	f->rate = ctl_rate(f->ctl, seconds(start));
	f->ra_params = (struct ra_params){
		.domain = RA_QP,
		.frames = (int)s->ladder.gop,
		.beta = s->beta,
		.q_ref = CLAMP(Q_REF, s->ladder.q_min, s->ladder.q_max),
		.q_min = s->ladder.q_min,
		.q_max = s->ladder.q_max,
		.rho = 0.5,
		.gamma = 1,
		.r_min = (double)s->rate_min * group_time(s),
		.r_max = (double)s->rate_max * group_time(s),
	};
	ra_init(&f->ra, &f->ra_params, f->rate * group_time(s));
	f->frame_ns = start - s->interval_ns;
	f->report_ns = start + REPORT_INTERVAL;
	f->due = start;
	register_flow(f);
}

static gboolean parse(struct trace_sender *s, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"trace", 0, 0, G_OPTION_ARG_FILENAME, &s->ladder_dir,
		 "The ladder, as paqm-trace pre made it", "DIR"},
		{"to", 0, 0, G_OPTION_ARG_STRING, &s->to,
		 "Where to send; flow N to PORT+2N, its RTCP one above", "ADDR:PORT"},
		{"flows", 0, 0, G_OPTION_ARG_INT, &s->flows, "Flows (1)", "N"},
		{"spread", 0, 0, G_OPTION_ARG_DOUBLE, &s->spread,
		 "All flows but the first start at random within so long (0)", "S"},
		{"loop", 0, 0, G_OPTION_ARG_NONE, &s->loops,
		 "The first flow, too, goes on at a random group at the clip's end", NULL},
		{"burst", 0, 0, G_OPTION_ARG_NONE, &s->burst,
		 "All packets of a picture at once, not spread over its interval", NULL},
		{"a-priori", 0, 0, G_OPTION_ARG_NONE, &s->a_priori,
		 "Plan with the exact size of the next group, as published; a live encoder cannot",
		 NULL},
		{"controller", 0, 0, G_OPTION_ARG_STRING, &s->controller,
		 "What decides about the rate, as without --trace (auto)", "NAME"},
		{"beta", 0, 0, G_OPTION_ARG_DOUBLE, &s->beta, "Bucket over allowance (1.5)", "X"},
		{"rate-max", 0, 0, G_OPTION_ARG_STRING, &s->rate_max_text,
		 "Highest rate of a flow, headers included (3mbit)", "BPS"},
		{"rate-min", 0, 0, G_OPTION_ARG_STRING, &s->rate_min_text,
		 "Lowest rate (200kbit, or rate-max if that is lower)", "BPS"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &s->duration,
		 "Stop all flows after so long", "S"},
		{"seed", 0, 0, G_OPTION_ARG_INT64, &s->seed, "Makes all random choices repeatable",
		 "N"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &s->log_dir,
		 "Write flowNNN/tx.csv, gop.csv and feedback.csv there", "DIR"},
		{"paqmd", 0, 0, G_OPTION_ARG_FILENAME, &s->paqmd,
		 "Socket of the feedback daemon, or none ($PAQM_SOCKET, /run/paqmd/client.sock)",
		 "PATH|none"},
		{0},
	};

	if (!parse_options(
		    NULL, "Sends a ready-made quality ladder live, at the rate the network grants.",
		    entries, &argc, &argv, error))
		return FALSE;
	if (!s->to || !s->ladder_dir) {
		g_set_error(error, USAGE_ERROR, 0,
			    "%s is missing; see paqm-streamer send --trace --help",
			    s->to ? "the directory of --trace" : "--to");
		return FALSE;
	}
	s->dest = parse_address(s->to, 0, error);
	if (!s->dest ||
	    !parse_rate(s->rate_max_text ? s->rate_max_text : "3mbit", &s->rate_max, error))
		return FALSE;
	s->kind = ctl_find(s->controller ? s->controller : "auto");
	if (!s->kind || s->kind->element) {
		g_set_error(
			error, USAGE_ERROR, 0,
			"--controller %s: not in trace mode; give auto, nada, tfrc, erf, ecf or "
			"fixed",
			s->controller);
		return FALSE;
	}
	s->rate_min = MIN(200000, s->rate_max);
	if (s->rate_min_text && !parse_rate(s->rate_min_text, &s->rate_min, error))
		return FALSE;
	if (s->rate_min > s->rate_max || s->flows < 1 || s->flows > TRACE_FLOWS_MAX ||
	    s->spread < 0 || s->spread > 3600 || s->duration < 0 || s->duration > 1e6 ||
	    s->beta < 0.5 || s->beta > 100 ||
	    g_inet_socket_address_get_port(s->dest) + 2 * s->flows > 65535) {
		g_set_error(
			error, USAGE_ERROR, 0,
			"an option is out of range: --rate-min must not exceed --rate-max, "
			"--flows 1 to %d and ports up to 65535, --spread 0 to 3600, --beta 0.5 to "
			"100",
			TRACE_FLOWS_MAX);
		return FALSE;
	}
	return ladder_open(&s->ladder, s->ladder_dir, error);
}

static void plan_ahead(struct trace_sender *s)
{
	guint groups = s->ladder.frames / s->ladder.gop;
	int q = CLAMP(Q_REF, s->ladder.q_min, s->ladder.q_max);

	s->open_bits = g_new(guint64, groups);
	for (guint i = 0; i < groups; i++)
		s->open_bits[i] =
			ladder_group_wire_bits(&s->ladder, q, i * s->ladder.gop, s->headers);
}

static gboolean prepare(struct trace_sender *s, GError **error)
{
	s->rand = s->seed >= 0 ? g_rand_new_with_seed((guint32)s->seed) : g_rand_new();
	s->interval_ns = (gint64)gst_util_uint64_scale(1000000000, (guint64)s->ladder.fps_d,
						       (guint64)s->ladder.fps_n);
	s->ctl_params = (struct ctl_params){.rate_min = (double)s->rate_min,
					    .rate_max = (double)s->rate_max,
					    .packet = WIRE_PACKET};
	if (!trace_loop_init(&s->loop, error))
		return FALSE;
	s->headers = wire_ip_udp(g_socket_address_get_family(G_SOCKET_ADDRESS(s->dest)) ==
				 G_SOCKET_FAMILY_IPV6) +
		     RTP_HEADER;
	if (s->a_priori)
		plan_ahead(s);
	s->advice = advice_new(s->paqmd);
	for (gint i = 0; i < s->flows; i++)
		if (!open_flow(s, (guint)i, error))
			return FALSE;
	return TRUE;
}

static gboolean quit_advice(gpointer data)
{
	g_main_loop_quit(data);
	return G_SOURCE_REMOVE;
}

static gpointer hear_advice(gpointer data)
{
	struct trace_sender *s = data;

	g_main_loop_run(s->hearing);
	return NULL;
}

static void run(struct trace_sender *s)
{
	struct trace_watch timer = {on_timer, s};
	guint64 packets = 0, frames = 0;
	GThread *advice;

	s->begin_ns = on_grid(monotonic_ns());
	s->wall_offset = realtime_ns() - monotonic_ns();
	s->tick_ns = s->begin_ns + TICK_NS;
	s->running = (guint)s->flows;
	for (gint i = 0; i < s->flows; i++)
		start_flow(&s->flow[i]);
	s->hearing = g_main_loop_new(NULL, FALSE);
	advice = g_thread_new("advice", hear_advice, s);
	trace_timer_set(&s->loop, s->begin_ns);
	trace_loop_run(&s->loop, &timer);
	/* not before it runs: a quit that comes early is lost */
	g_idle_add(quit_advice, s->hearing);
	g_thread_join(advice);
	g_main_loop_unref(s->hearing);
	for (gint i = 0; i < s->flows; i++) {
		packets += s->flow[i].packets;
		frames += s->flow[i].frame;
	}
	printf("sent %" G_GUINT64_FORMAT " pictures in %" G_GUINT64_FORMAT " packets, %" //
	       G_GUINT64_FORMAT " more refused by the host\n",
	       frames, packets - MIN(packets, s->refused), s->refused);
}

static void close_flow(struct trace_sender *s, struct trace_flow *f)
{
	if (!f->s)
		return;
	if (f->ctl)
		ctl_free(f->ctl);
	trace_close(&f->rtp);
	trace_close(&f->rtcp);
	g_array_free(f->pieces, TRUE);
	if (!close_log(f->tx_csv, "tx.csv") | !close_log(f->gop_csv, "gop.csv") |
	    !close_log(f->feedback_csv, "feedback.csv"))
		s->status = EXIT_RUN;
}

int cmd_trace_send(int argc, char **argv)
{
	struct trace_sender *s = g_new0(struct trace_sender, 1);
	GError *error = NULL;
	int status;

	g_set_prgname("paqm-streamer send");
	gst_init(NULL, NULL);
	s->flows = 1;
	s->beta = 1.5;
	s->seed = -1;
	s->loop = (struct trace_loop){-1, -1, -1, FALSE};
	g_mutex_init(&s->lock);
	if (parse(s, argc, argv, &error) && prepare(s, &error)) {
		printf("sending %d flows of %s to %s, %.0f to %.0f kbit/s each\n", s->flows,
		       s->ladder_dir, s->to, s->rate_min / 1e3, s->rate_max / 1e3);
		fflush(stdout);
		run(s);
	}
	advice_free(s->advice);
	if (error)
		s->status = report_error(error);
	for (gint i = 0; i < TRACE_FLOWS_MAX; i++)
		close_flow(s, &s->flow[i]);
	ladder_close(&s->ladder);
	trace_loop_clear(&s->loop);
	g_mutex_clear(&s->lock);
	g_clear_pointer(&s->rand, g_rand_free);
	g_clear_object(&s->dest);
	g_free(s->open_bits);
	g_free(s->to);
	g_free(s->ladder_dir);
	g_free(s->controller);
	g_free(s->log_dir);
	g_free(s->paqmd);
	g_free(s->rate_max_text);
	g_free(s->rate_min_text);
	status = s->status;
	g_free(s);
	return status;
}
