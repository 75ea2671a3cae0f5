// SPDX-License-Identifier: GPL-2.0
/*
 * A flow of trace mode: picks a quantizer per group of pictures (RA-SVBR) from the same allowance
 * as a stream with an encoder, takes the pictures from the ladder, and sends their packets.
 */
#include "streamer/trace/trace_flow.h"

#include <fcntl.h>
#include <gst/rtp/gstrtcpbuffer.h>
#include <math.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "streamer/options.h"
#include "streamer/outgoing/rate.h"
#include "streamer/rtp/wire.h"
#include "streamer/trace/rtph264.h"

#define RTCP_SIZE 512
#define LOG_EVERY_TICKS 2
/* Of sender reports on the port of the media: the least of RFC 3550. */
#define SHARED_INTERVAL (5 * G_GINT64_CONSTANT(1000000000))
#define NEVER G_MAXINT64
#define TX_HEADER "seq,t_ns,frame,src_frame,frag,nfrag,wire_bytes,q,type"
#define GOP_HEADER                                                                                 \
	"gop,t_ns,frames,src_frame,q,R_bits,r_eff,b_eff,X,overflow,x,e1,e2,R_open,R_temp,Qstar,"   \
	"r_t"
#define FEEDBACK_HEADER "t_ns,cause,value,rate_bps"

static double seconds(gint64 ns)
{
	return ns / 1e9;
}

static double group_time(const struct trace_sender *s)
{
	return s->app ? s->ctl_params.pause : seconds(s->interval_ns) * s->ladder.gop;
}

static void use_rate(struct trace_flow *f, gint64 now)
{
	double rate = ctl_rate(f->ctl, seconds(now));

	/* what waits counts, whether the rate has changed or not */
	if (rate == f->rate && !f->waiting)
		return;
	f->rate = rate;
	if (f->s->app) /* frames go by the rate itself */
		return;
	if (f->waiting)
		ra_feedback_buffered(&f->ra, &f->ra_params, rate * group_time(f->s),
				     g_queue_get_length(f->waiting));
	else
		ra_feedback(&f->ra, &f->ra_params, rate * group_time(f->s));
}

/* ECN that the path does not treat as it should is not used (RFC 6679 section 7.2). */
static void check_ecn(struct trace_flow *f)
{
	enum ctl_path path = ctl_ecn_seen(f->ctl)->path;

	if (!f->ecn || (path != CTL_PATH_BLEACHED && path != CTL_PATH_STUCK))
		return;
	g_printerr("paqm-streamer: flow %u: ECN is off from now on: %s\n", f->index,
		   path == CTL_PATH_STUCK ? "every packet comes back marked"
					  : "no report shows an ECN-capable packet");
	f->ecn = FALSE;
	trace_send_as(f->rtp, f->s->dscp, ECN_NOT_ECT, NULL);
}

static void log_value(const char *controller, const char *key, double value, void *data)
{
	fprintf(data, "%" G_GINT64_FORMAT ",%s,%s,%.9g\n", realtime_ns(), controller, key, value);
}

/* Begin the train that the controller wants, end the one that it does not want any more. */
static void use_train(struct trace_flow *f, gint64 now)
{
	struct ctl_train t;

	if (!ctl_train(f->ctl, seconds(now), &t)) {
		f->in_train = FALSE;
	} else if (!f->any_train || t.id != f->train.id) {
		f->in_train = f->any_train = TRUE;
		f->train = t;
		f->train_next = 0;
		f->train_ns = f->due = now;
	}
}

void trace_flow_tick(struct trace_flow *f, gint64 now)
{
	ctl_sent(f->ctl, seconds(now), f->wire);
	f->wire = 0;
	use_rate(f, now);
	check_ecn(f);
	if (f->control_csv && f->ticks++ % LOG_EVERY_TICKS == 0)
		ctl_state(f->ctl, log_value, f->control_csv);
	if (f->control_csv && f->waiting)
		log_value("buffer", "packets", g_queue_get_length(f->waiting), f->control_csv);
	if (f->due != NEVER)
		use_train(f, now);
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

/* Reports about this flow. */
static void on_rtcp(gpointer data)
{
	struct trace_flow *f = data;
	gint64 now = monotonic_ns();
	guint8 packet[1500];
	ssize_t n;

	g_mutex_lock(&f->s->lock);
	while ((n = recv(f->rtcp, packet, sizeof(packet), 0)) > 0)
		trace_flow_hear(f, packet, (gsize)n, now);
	use_rate(f, now);
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
	f->report_ns += f->s->app ? SHARED_INTERVAL : REPORT_INTERVAL;
}

/* Which picture of the clip the flow is at. */
static guint source_frame(const struct trace_flow *f)
{
	return f->s->app ? f->tick : f->gop_first + f->frame % f->s->ladder.gop;
}

/* RTP time of a picture. */
static guint32 picture_ts(const struct trace_flow *f, guint frame)
{
	const struct trace_sender *s = f->s;

	if (s->app)
		return f->ts_offset +
		       (guint32)((f->frame_ns - s->begin_ns) / 1000 * TRACE_CLOCK / 1000000);
	return f->ts_offset + (guint32)gst_util_uint64_scale(frame,
							     (guint64)TRACE_CLOCK * s->ladder.fps_d,
							     (guint64)s->ladder.fps_n);
}

static char letter(const struct trace_flow *f, const struct trace_packet *k)
{
	if (!k->of)
		return 'F';
	return f->s->app || k->frame % f->s->ladder.gop ? 'P' : 'I';
}

/* A packet of a picture, or (k->of is 0) one that only fills a train. */
static void send_packet(struct trace_flow *f, const struct trace_packet *k, gint64 now)
{
	guint32 media = k->of ? (guint32)h264_piece_size(&k->piece) : 0, size;
	gboolean marker = k->of && k->number + 1 == k->of;
	guint8 head[RTP_HEADER + WIRE_PACKET] = {0x80, (guint8)(TRACE_PT | (marker ? 0x80 : 0))};
	gsize head_len = RTP_HEADER;
	struct iovec iov[2] = {{head, 0}, {(void *)k->piece.data, k->piece.len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = k->of ? 2 : 1};

	GST_WRITE_UINT16_BE(head + 2, f->seq);
	GST_WRITE_UINT32_BE(head + 4, picture_ts(f, k->frame));
	GST_WRITE_UINT32_BE(head + 8, f->ssrc);
	if (f->in_train) {
		struct probe probe = {.clock_us = (guint64)now / 1000,
				      .train = f->train.id,
				      .index = f->train_next++,
				      .packets = f->train.packets,
				      .flags = (guint8)((f->train.start ? PROBE_START : 0) |
							(k->of ? 0 : PROBE_PADDING)),
				      .rate = (guint32)MIN(f->train.rate, G_MAXUINT32)};
		gsize room = (WIRE_PACKET - f->s->headers - media) & ~(gsize)3;

		head[0] |= 0x10;
		probe_extension(head + RTP_HEADER, room, &probe);
		head_len += room;
	} else if (f->s->kind->extension) {
		head[0] |= 0x10;
		ctl_extend(f->ctl, seconds(now), head + RTP_HEADER);
		head_len += f->s->kind->extension;
	}
	size = (guint32)(f->s->headers - RTP_HEADER + head_len) + media;
	if (k->of) {
		memcpy(head + head_len, k->piece.head, k->piece.head_len);
		head_len += k->piece.head_len;
	}
	iov[0].iov_len = head_len;
	/* A full queue on the way out loses packets; so it would for any sender. */
	if (sendmsg(f->rtp, &msg, 0) < 0)
		f->s->refused++;
	if (f->tx_csv)
		fprintf(f->tx_csv, "%u,%" G_GINT64_FORMAT ",%u,%u,%u,%u,%u,%d,%c\n", f->seq,
			now + f->s->wall_offset, k->frame, k->source, k->number, k->of, size, k->q,
			letter(f, k));
	f->sent[f->seq % TRACE_SENT] = (struct trace_sent){now, size, f->seq};
	f->seq++;
	f->packets++;
	f->octets += size - f->s->headers;
	f->wire += size;
}

/* The next packet of the picture under way. */
static struct trace_packet next_packet(struct trace_flow *f)
{
	struct trace_packet k = {
		.piece = g_array_index(f->pieces, struct h264_piece, f->piece),
		.frame = f->frame,
		.source = source_frame(f),
		.number = f->piece,
		.of = f->pieces->len,
		.q = f->q,
	};

	if (++f->piece == f->pieces->len)
		f->frame++;
	return k;
}

/* When the next packet of the train leaves. */
static gint64 slot_ns(const struct trace_flow *f)
{
	return f->train_ns + (gint64)(8e9 * WIRE_PACKET / f->train.rate * f->train_next);
}

/* A packet of the train: media if there is any. What fills goes with the picture before it. */
static void send_slot(struct trace_flow *f, gint64 now)
{
	struct trace_packet k = {
		.frame = f->frame ? f->frame - 1 : 0, .source = source_frame(f), .q = f->q};

	if (f->piece < f->pieces->len)
		k = next_packet(f);
	send_packet(f, &k, now);
	f->in_train = f->train_next < f->train.packets;
}

/* The whole picture into the send buffer. */
static void wait_picture(struct trace_flow *f, gint64 now)
{
	gboolean fits = g_queue_get_length(f->waiting) + f->pieces->len <= TRACE_WAITING;

	if (!g_queue_get_length(f->waiting))
		f->drain_ns = MAX(f->drain_ns, now);
	while (f->piece < f->pieces->len) {
		struct trace_packet k = next_packet(f);

		if (fits)
			g_queue_push_tail(f->waiting, g_memdup2(&k, sizeof(k)));
		else
			f->s->refused++;
	}
}

/* What the rate allows leaves the send buffer. */
static void drain(struct trace_flow *f, gint64 now)
{
	while (g_queue_get_length(f->waiting) && f->drain_ns <= now) {
		struct trace_packet *k = g_queue_pop_head(f->waiting);

		send_packet(f, k, now);
		f->drain_ns += (gint64)(8e9 * (f->s->headers + (double)h264_piece_size(&k->piece)) /
					f->rate);
		g_free(k);
	}
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

/* The frame of an application with levels, if this one has it. A new rate counts from the next. */
static void next_frame(struct trace_flow *f)
{
	static const guint8 nothing[WIRE_LONGEST];
	const struct trace_sender *s = f->s;
	guint around = s->headers + (guint)s->kind->extension, left;

	f->q = levels_at(s->app, f->rate);
	left = levels_frame(s->app, (guint)s->packet, f->tick++, f->q);
	g_array_set_size(f->pieces, 0);
	f->piece = 0;
	while (left) {
		guint part = MIN(left, (guint)s->packet);
		struct h264_piece piece = {.data = nothing,
					   .len = part > around ? part - around : 1};

		g_array_append_val(f->pieces, piece);
		left -= part;
	}
	f->step_ns = levels_step_ns(s->app, (guint)s->packet, f->rate);
}

/* The picture whose time has come. False: there is none any more. */
static gboolean next_picture(struct trace_flow *f, gint64 now)
{
	struct trace_sender *s = f->s;
	double wire = 0;
	guint source;

	if (s->app) {
		next_frame(f);
		return TRUE;
	}
	if (f->frame % s->ladder.gop == 0 && !next_group(f, now))
		return FALSE;
	source = source_frame(f);
	g_array_set_size(f->pieces, 0);
	h264_cut(ladder_unit(&s->ladder, f->q, source),
		 ladder_frame(&s->ladder, f->q, source)->size,
		 (s->kind->bursts ? wire_burst_packet(f->rate, 1 / seconds(s->interval_ns))
				  : WIRE_PACKET) -
			 s->headers - (s->kind->train ? PROBE_ROOM : 0),
		 f->pieces);
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

void trace_flow_end(struct trace_flow *f)
{
	if (f->due == NEVER)
		return;
	f->due = NEVER;
	if (--f->s->running == 0)
		f->s->loop.stop = TRUE;
}

void trace_flow_serve(struct trace_flow *f, gint64 now)
{
	struct trace_sender *s = f->s;

	while (f->due <= now) {
		gint64 next_picture_ns = f->frame_ns + f->step_ns, next_piece;

		if (f->report_ns <= now)
			send_report(f, now);
		if (f->waiting)
			drain(f, now);
		if (f->in_train && slot_ns(f) <= now) {
			send_slot(f, now);
		} else if (f->piece < f->pieces->len) {
			struct trace_packet k;

			if (!f->in_train) {
				k = next_packet(f);
				send_packet(f, &k, now);
			}
		} else if (next_picture_ns <= now) {
			f->frame_ns = next_picture_ns;
			if (!next_picture(f, now)) {
				trace_flow_end(f);
				return;
			}
			if (f->waiting)
				wait_picture(f, now);
			continue; /* its first packet leaves at once */
		}
		next_piece = s->burst || s->app || s->kind->bursts || !f->pieces->len
				     ? f->frame_ns
				     : f->frame_ns + s->interval_ns * f->piece / f->pieces->len;
		if (f->piece == f->pieces->len)
			next_piece = f->frame_ns + f->step_ns;
		else if (f->in_train) /* its slots are those of the train */
			next_piece = NEVER;
		f->due = MIN(next_piece, f->report_ns);
		if (f->in_train)
			f->due = MIN(f->due, slot_ns(f));
		if (f->waiting && g_queue_get_length(f->waiting))
			f->due = MIN(f->due, f->drain_ns);
	}
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
	/* of the one that is judged */
	if (f->feedback_csv && !f->index)
		f->control_csv = open_log(dir, "control.csv", RATE_HEADER, error);
	g_free(dir);
	return f->feedback_csv && (f->index || f->control_csv);
}

gboolean trace_flow_open(struct trace_sender *s, guint index, GError **error)
{
	guint16 port = (guint16)(g_inet_socket_address_get_port(s->dest) + 2 * index);
	struct trace_flow *f = &s->flow[index];
	gint groups = s->app ? 0 : (gint)(s->ladder.frames / s->ladder.gop);

	f->s = s;
	f->index = index;
	f->ssrc = g_rand_int(s->rand);
	f->ts_offset = g_rand_int(s->rand);
	f->seq = (guint16)g_rand_int_range(s->rand, 0, 32768);
	f->pieces = g_array_new(FALSE, FALSE, sizeof(struct h264_piece));
	f->waiting = s->decay > 0 ? g_queue_new() : NULL;
	/* The first flow is the one to be judged: the whole clip, once. */
	f->gop_first =
		index && groups ? (guint)g_rand_int_range(s->rand, 0, groups) * s->ladder.gop : 0;
	f->rtp = trace_socket(s->dest, port, TRUE, error);
	/* An application with levels is one flow for whoever counts flows (RFC 5761). */
	f->rtcp = f->rtp < 0 ? -1
		  : s->app   ? fcntl(f->rtp, F_DUPFD_CLOEXEC, 0)
			     : trace_socket(s->dest, port + 1, TRUE, error);
	if (f->rtcp < 0 || !open_logs(f, error))
		return FALSE;
	f->sent = g_new0(struct trace_sent, TRACE_SENT);
	f->ecn = s->ecn != ECN_NOT_ECT;
	if ((f->ecn || s->dscp) && !trace_send_as(f->rtp, s->dscp, s->ecn, error))
		return FALSE;
	f->watch = (struct trace_watch){on_rtcp, f};
	return trace_loop_add(&s->loop, f->rtcp, &f->watch, error);
}

void trace_flow_start(struct trace_flow *f)
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
		.decay = s->decay,
		.r_min = (double)s->rate_min * group_time(s),
		.r_max = (double)s->rate_max * group_time(s),
	};
	if (!s->app)
		ra_init(&f->ra, &f->ra_params, f->rate * group_time(s));
	f->step_ns = s->interval_ns;
	f->frame_ns = start - f->step_ns;
	/* Reports on trains are sent to where the first one of ours comes from. */
	f->report_ns = s->no_reports		  ? G_MAXINT64
		       : s->kind->train || s->app ? start
						  : start + REPORT_INTERVAL;
	f->due = start;
	register_flow(f);
}

gboolean trace_flow_close(struct trace_flow *f)
{
	if (!f->s)
		return TRUE;
	if (f->ctl)
		ctl_free(f->ctl);
	trace_close(&f->rtp);
	trace_close(&f->rtcp);
	g_array_free(f->pieces, TRUE);
	if (f->waiting)
		g_queue_free_full(f->waiting, g_free);
	g_free(f->sent);
	/* each of them, whatever became of the others */
	return close_log(f->tx_csv, "tx.csv") & close_log(f->gop_csv, "gop.csv") &
	       close_log(f->feedback_csv, "feedback.csv") &
	       close_log(f->control_csv, "control.csv");
}
