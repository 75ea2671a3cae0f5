// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer recv --trace: logs what arrives of many streams, answers with
 * receiver reports, and can keep the first stream's complete pictures. It does
 * not decode: `paqm-trace post` rebuilds the video from the logs.
 */
#include <errno.h>
#include <gst/rtp/gstrtcpbuffer.h>
#include <gst/rtp/gstrtpbuffer.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>
#include <sys/socket.h>

#include "core/paqm_bytes.h"
#include "streamer/decide/decide.h"
#include "streamer/options.h"
#include "streamer/outgoing/choice.h"
#include "streamer/rtp/ccfb.h"
#include "streamer/rtp/probe.h"
#include "streamer/trace/rtph264.h"
#include "streamer/trace/trace.h"
#include "streamer/rtp/wire.h"

#define RX_HEADER "t_ns,seq,rtp_ts,marker,wire_bytes"
#define RTCP_SIZE 256
#define BATCH 16
/* How often packets are read, with the kernel's times: in a guest of the lab system calls are what
 * costs. Where some sender hears of each packet it shall hear soon. */
#define READ_INTERVAL (50 * 1000000ll)
#define READ_TO_TELL (20 * 1000000ll)
#define PACKET_MAX 2048

struct trace_receiver;

/* Reception of one stream, RFC 3550 section 6.4.1 and appendix A.3, A.8. */
struct trace_stream {
	struct trace_receiver *r;
	guint index;
	int rtp, rtcp;
	struct trace_watch on_rtcp, on_rtp;
	struct sockaddr_storage peer; /* where its sender reports come from, */
	socklen_t peer_len;
	gboolean shared; /* and that is the port of its media (RFC 5761) */
	guint64 packets, foreign;
	guint ip_udp; /* bytes of headers below RTP */

	gboolean have_ssrc;
	guint32 ssrc;
	guint32 base, highest; /* extended sequence numbers */
	guint32 expected_prior, received_prior, received;
	double jitter; /* in units of the RTP clock */
	double transit;
	guint64 sr_ntp;
	gint64 sr_ns;
	FILE *rx_csv;
	struct ccfb ccfb; /* its times are those of realtime_ns() */
	gboolean tell;	  /* the fate of each packet */
	struct dec *dec;  /* receiving side of a controller; NULL: none */
};

struct trace_receiver {
	char *listen, *log_dir, *record, *controller, *feedback_text;
	gint streams, dscp;
	gdouble duration;
	gboolean trace, tell, losses_only;
	GInetSocketAddress *local;
	struct trace_stream stream[TRACE_FLOWS_MAX];
	guint32 own_ssrc;
	struct h264_unit unit; /* of the first stream */
	guint64 kept, broken;
	FILE *es;
	struct trace_loop loop;
	gint64 read_ns, tick_ns, end_ns, armed_ns, ahead_ns; /* ahead: realtime less monotonic */
	int status;
};

/* False: not a packet of the stream. */
static gboolean count_packet(struct trace_stream *st, guint32 ssrc, guint16 seq, guint32 ts,
			     gint64 now)
{
	double transit = now / 1e9 * TRACE_CLOCK - ts;
	gint16 ahead;

	if (!st->have_ssrc) {
		st->have_ssrc = TRUE;
		st->ssrc = ssrc;
		st->base = st->highest = 65536u + seq;
		st->transit = transit;
	} else if (ssrc != st->ssrc) {
		st->foreign++;
		return FALSE;
	} else {
		ahead = (gint16)(seq - (guint16)st->highest);
		if (ahead > 0)
			st->highest += (guint32)ahead;
		/* time stamps wrap: differences beyond an hour are that */
		if (ABS(transit - st->transit) < 3600.0 * TRACE_CLOCK)
			st->jitter += (ABS(transit - st->transit) - st->jitter) / 16;
		st->transit = transit;
	}
	st->received++;
	st->packets++;
	return TRUE;
}

static void keep(struct trace_receiver *r, const guint8 *packet, gsize len, guint16 seq, guint32 ts)
{
	gsize head;

	probe_find(packet, len, &head);
	/* what the sender of trace mode never makes: RTP's padding */
	if (packet[0] & 0x20 || !head)
		return;
	if (head == len) { /* it filled up a train */
		h264_unit_pass(&r->unit, seq);
		return;
	}
	switch (h264_unit_add(&r->unit, seq, ts, packet[1] >> 7, packet + head, len - head)) {
	case H264_JOIN_COMPLETE:
		fwrite(r->unit.data->data, 1, r->unit.data->len, r->es);
		r->kept++;
		break;
	case H264_JOIN_BROKEN:
		r->broken++;
		break;
	case H264_JOIN_MORE:
		break;
	}
}

/* For the sender's controller. */
static void see(struct trace_stream *st, const guint8 *packet, gsize len, enum ecn ecn, gint64 now)
{
	struct dec_packet d = {
		.at = now / 1e9,
		.bytes = len + st->ip_udp,
		.ecn = ecn,
		.ts = paqm_get32(packet + 4),
		.seq = paqm_get16(packet + 2),
		.marker = packet[1] >> 7,
		.rtp = packet,
		.len = len,
		.readable = len,
	};

	ccfb_see(&st->ccfb, 0, st->ssrc, d.seq, ecn, (guint64)now);
	if (ecn != ECN_NOT_ECT && !st->r->losses_only)
		st->tell = st->r->tell = TRUE;
	if (st->dec)
		dec_see(st->dec, st->ssrc, &d);
}

static void take_packet(struct trace_stream *st, const guint8 *packet, gsize len, enum ecn ecn,
			gint64 now)
{
	struct trace_receiver *r = st->r;
	guint32 ts, ssrc;
	guint16 seq;

	if (len < RTP_HEADER || packet[0] >> 6 != 2) {
		st->foreign++;
		return;
	}
	seq = GST_READ_UINT16_BE(packet + 2);
	ts = GST_READ_UINT32_BE(packet + 4);
	ssrc = GST_READ_UINT32_BE(packet + 8);
	if (!count_packet(st, ssrc, seq, ts, now))
		return;
	see(st, packet, len, ecn, now);
	if (st->rx_csv)
		fprintf(st->rx_csv, "%" G_GINT64_FORMAT ",%u,%u,%d,%" G_GSIZE_FORMAT "\n", now, seq,
			ts, packet[1] >> 7, len + st->ip_udp);
	if (r->es && !st->index)
		keep(r, packet, len, seq, ts);
}

/* Sender reports: their time, and where reports go. */
static void hear(struct trace_stream *st, guint8 *packet, gsize len,
		 const struct sockaddr_storage *from, socklen_t from_len)
{
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	GstRTCPPacket p;
	GstBuffer *buf;
	guint32 ssrc, ts, packets, octets;
	guint64 ntp;

	if (!gst_rtcp_buffer_validate_data_reduced(packet, (guint)len)) {
		st->foreign++;
		return;
	}
	buf = gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, packet, len, 0, len, NULL,
					  NULL);
	gst_rtcp_buffer_map(buf, GST_MAP_READ, &rtcp);
	if (gst_rtcp_buffer_get_first_packet(&rtcp, &p) &&
	    gst_rtcp_packet_get_type(&p) == GST_RTCP_TYPE_SR) {
		gst_rtcp_packet_sr_get_sender_info(&p, &ssrc, &ntp, &ts, &packets, &octets);
		if (st->have_ssrc && ssrc == st->ssrc) {
			st->sr_ntp = ntp;
			st->sr_ns = monotonic_ns();
		}
		/* the first one may come before the stream has been looked at */
		if (!st->have_ssrc || ssrc == st->ssrc) {
			memcpy(&st->peer, from, sizeof(*from));
			st->peer_len = from_len;
		}
	}
	gst_rtcp_buffer_unmap(&rtcp);
	gst_buffer_unref(buf);
}

/* When the kernel got it, and with which ECN field. */
static gint64 arrival(struct msghdr *msg, enum ecn *ecn)
{
	gint64 when = 0, now;

	*ecn = ECN_NOT_ECT;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct timespec at;
		int wide = 0;

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&at, CMSG_DATA(c), sizeof(at));
			when = (gint64)at.tv_sec * 1000000000 + at.tv_nsec;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			*ecn = (enum ecn)(*(const guint8 *)CMSG_DATA(c) & ECN_CE);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&wide, CMSG_DATA(c), sizeof(wide));
			*ecn = (enum ecn)(wide & ECN_CE);
		}
	}
	now = realtime_ns();
	return when ? now - CLAMP(wall_ns() - when, 0, 1000000000) : now;
}

/* To where its sender reports come from. A lost report is no harm: the next one says more. */
static void send_back(struct trace_stream *st, gconstpointer p, gsize len)
{
	if (len && st->peer_len)
		sendto(st->shared ? st->rtp : st->rtcp, p, len, 0, (struct sockaddr *)&st->peer,
		       st->peer_len);
}

/* After packets were read: reports on each of them, and what its controller has to tell. */
static void tell_sender(struct trace_stream *st)
{
	guint32 ssrc = st->r->own_ssrc + st->index;
	guint8 report[CCFB_MAX], app[DEC_APP];
	gint64 now = realtime_ns();

	if (st->tell && st->peer_len && ccfb_due(&st->ccfb, true, (guint64)now))
		send_back(st, report,
			  ccfb_write(&st->ccfb, report, ssrc, (guint32)(trace_ntp(now) >> 16),
				     (guint64)now));
	if (st->dec && st->peer_len)
		send_back(st, app, dec_tell(st->dec, now / 1e9, ssrc, app));
}

/* On the port of RTP (RFC 5761 section 4). */
static gboolean is_rtcp(const guint8 *p, gsize len)
{
	return len > 1 && wire_is_rtcp(p[1]);
}

/* Does its receiving side decide by when packets come? */
static gboolean prompt(const struct trace_stream *st)
{
	return st->dec && dec_prompt(st->dec);
}

/* A socket of IPv6 takes IPv4, too. */
static gboolean is_ipv6(const struct sockaddr_storage *from)
{
	return from->ss_family == AF_INET6 &&
	       !IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)from)->sin6_addr);
}

static void read_packets(struct trace_stream *st)
{
	static char control[BATCH][CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(int))];
	static guint8 packet[BATCH][PACKET_MAX];
	static struct sockaddr_storage from[BATCH];
	static struct iovec iov[BATCH];
	static struct mmsghdr msg[BATCH];
	enum ecn ecn;
	int n;

	do {
		for (int i = 0; i < BATCH; i++) {
			iov[i] = (struct iovec){packet[i], PACKET_MAX};
			msg[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
							 .msg_namelen = sizeof(from[i]),
							 .msg_iov = &iov[i],
							 .msg_iovlen = 1,
							 .msg_control = control[i],
							 .msg_controllen = sizeof(control[i])};
		}
		n = recvmmsg(st->rtp, msg, BATCH, MSG_DONTWAIT, NULL);
		for (int i = 0; i < n; i++) {
			gint64 at = arrival(&msg[i].msg_hdr, &ecn);

			if (is_rtcp(packet[i], msg[i].msg_len)) {
				st->shared = TRUE;
				hear(st, packet[i], msg[i].msg_len, &from[i],
				     msg[i].msg_hdr.msg_namelen);
				continue;
			}
			if (prompt(st) && !st->peer_len) { /* the first report may be lost */
				st->shared = TRUE;
				st->peer = from[i];
				st->peer_len = msg[i].msg_hdr.msg_namelen;
			}
			st->ip_udp = wire_ip_udp(is_ipv6(&from[i]));
			take_packet(st, packet[i], msg[i].msg_len, ecn, at);
		}
	} while (n == BATCH);
	tell_sender(st);
}

/* From the port of RTCP. */
static void on_rtcp(gpointer data)
{
	struct trace_stream *st = data;
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	guint8 packet[1500];
	ssize_t n;

	while ((n = recvfrom(st->rtcp, packet, sizeof(packet), 0, (struct sockaddr *)&from,
			     &from_len)) > 0) {
		hear(st, packet, (gsize)n, &from, from_len);
		from_len = sizeof(from);
	}
}

static void report(struct trace_stream *st)
{
	guint32 expected = st->highest - st->base + 1, lsr, dlsr;
	guint32 due = expected - st->expected_prior, got = st->received - st->received_prior;
	GstRTCPBuffer rtcp = GST_RTCP_BUFFER_INIT;
	GstBuffer *buf = gst_rtcp_buffer_new(RTCP_SIZE);
	guint8 fraction = 0;
	GstRTCPPacket p;
	GstMapInfo map;

	if (due && got < due)
		fraction = (guint8)MIN(255, (guint64)(due - got) * 256 / due);
	st->expected_prior = expected;
	st->received_prior = st->received;
	lsr = (guint32)(st->sr_ntp >> 16);
	dlsr = (guint32)((monotonic_ns() - st->sr_ns) / 1000 * 65536 / 1000000);
	gst_rtcp_buffer_map(buf, GST_MAP_READWRITE, &rtcp);
	gst_rtcp_buffer_add_packet(&rtcp, GST_RTCP_TYPE_RR, &p);
	gst_rtcp_packet_rr_set_ssrc(&p, st->r->own_ssrc + st->index);
	gst_rtcp_packet_add_rb(&p, st->ssrc, fraction, (gint32)(expected - st->received),
			       st->highest, (guint32)st->jitter, lsr, dlsr);
	gst_rtcp_buffer_add_packet(&rtcp, GST_RTCP_TYPE_SDES, &p);
	gst_rtcp_packet_sdes_add_item(&p, st->r->own_ssrc + st->index);
	gst_rtcp_packet_sdes_add_entry(&p, GST_RTCP_SDES_CNAME, 5, (guint8 *)"trace");
	gst_rtcp_buffer_unmap(&rtcp);
	if (gst_buffer_map(buf, &map, GST_MAP_READ)) {
		send_back(st, map.data, map.size);
		gst_buffer_unmap(buf, &map);
	}
	gst_buffer_unref(buf);
}

/* When there is anything to do without a packet. */
static gint64 next_ns(const struct trace_receiver *r)
{
	gint64 next = MIN(MIN(r->read_ns, r->tick_ns), r->end_ns);
	double due = INFINITY; /* s of realtime_ns() */

	for (gint i = 0; i < r->streams; i++)
		if (prompt(&r->stream[i]) && r->stream[i].peer_len)
			due = fmin(due, dec_next(r->stream[i].dec));
	return isfinite(due) ? MIN(next, (gint64)(due * 1e9) - r->ahead_ns) : next;
}

static void on_tick(gpointer data)
{
	struct trace_receiver *r = data;
	gint64 now = monotonic_ns();
	gboolean read = now >= MIN(MIN(r->read_ns, r->tick_ns), r->end_ns);

	for (gint i = 0; i < r->streams; i++)
		if (prompt(&r->stream[i]))
			tell_sender(&r->stream[i]);
		else if (read)
			read_packets(&r->stream[i]);
	if (read)
		r->read_ns = now + (r->tell || r->controller ? READ_TO_TELL : READ_INTERVAL);
	if (now >= r->end_ns)
		r->loop.stop = TRUE;
	if (now >= r->tick_ns) {
		for (gint i = 0; i < r->streams; i++)
			if (r->stream[i].have_ssrc && r->stream[i].peer_len)
				report(&r->stream[i]);
		r->tick_ns += REPORT_INTERVAL;
	}
	r->armed_ns = next_ns(r);
	trace_timer_set(&r->loop, r->armed_ns);
}

/* Of a stream that is read at once. */
static void on_rtp(gpointer data)
{
	struct trace_stream *st = data;
	struct trace_receiver *r = st->r;
	gint64 next;

	read_packets(st);
	next = next_ns(r);
	if (next < r->armed_ns) {
		r->armed_ns = next;
		trace_timer_set(&r->loop, next);
	}
}

static gboolean parse(struct trace_receiver *r, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"trace", 0, 0, G_OPTION_ARG_NONE, &r->trace, "Log only, decode nothing", NULL},
		{"listen", 0, 0, G_OPTION_ARG_STRING, &r->listen,
		 "Where to receive; flow N on PORT+2N, its RTCP one above", "ADDR:PORT"},
		{"flows", 0, 0, G_OPTION_ARG_INT, &r->streams, "Flows (1)", "N"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &r->log_dir, "Write flowNNN/rx.csv there",
		 "DIR"},
		{"feedback", 0, 0, G_OPTION_ARG_STRING, &r->feedback_text,
		 "Per-packet feedback, RFC 8888: from the first ECN-capable packet on (auto, "
		 "default), always, or never",
		 "auto|rfc8888|none"},
		{"controller", 0, 0, G_OPTION_ARG_STRING, &r->controller,
		 "The sender's controller and options, if the receiver takes part in it",
		 "NAME[:OPTION=VALUE,...]"},
		{"dscp", 0, 0, G_OPTION_ARG_INT, &r->dscp, "Mark the reports (0)", "N"},
		{"record", 0, 0, G_OPTION_ARG_FILENAME, &r->record,
		 "Write the complete pictures of the first flow there", "FILE.h264"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &r->duration, "Stop after S seconds", "S"},
		{0},
	};

	if (!parse_options(NULL, "Receives and logs the streams of send --trace.", entries, &argc,
			   &argv, error))
		return FALSE;
	if (!r->listen) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--listen is missing; see paqm-streamer recv --trace --help");
		return FALSE;
	}
	r->local = parse_address(r->listen, 0, error);
	if (!r->local)
		return FALSE;
	r->tell = !g_strcmp0(r->feedback_text, "rfc8888");
	r->losses_only = !g_strcmp0(r->feedback_text, "none");
	if (r->feedback_text && !r->tell && !r->losses_only &&
	    strcmp(r->feedback_text, "auto") != 0) {
		g_set_error(error, USAGE_ERROR, 0, "--feedback %s: must be auto, rfc8888 or none",
			    r->feedback_text);
		return FALSE;
	}
	return trace_ports_fit(r->local, r->streams, error) && duration_fits(r->duration, error) &&
	       in_range("--dscp", r->dscp, 0, 63, "", error);
}

static gboolean open_stream(struct trace_receiver *r, guint index, GError **error)
{
	guint16 port = (guint16)(g_inet_socket_address_get_port(r->local) + 2 * index);
	struct trace_stream *st = &r->stream[index];

	st->r = r;
	st->index = index;
	st->rtp = trace_socket(r->local, port, FALSE, error);
	st->rtcp = st->rtp < 0 ? -1 : trace_socket(r->local, port + 1, FALSE, error);
	if (st->rtcp < 0)
		return FALSE;
	if (r->log_dir) {
		char *dir = g_strdup_printf("%s/flow%03u", r->log_dir, index);

		st->rx_csv = open_log(dir, "rx.csv", RX_HEADER, error);
		g_free(dir);
		if (!st->rx_csv)
			return FALSE;
	}
	st->tell = r->tell;
	if (r->controller && !parse_decider(r->controller, &st->dec, error))
		return FALSE;
	st->on_rtcp = (struct trace_watch){on_rtcp, st};
	/* without it all packets count as not ECN-capable */
	setsockopt(st->rtp, IPPROTO_IP, IP_RECVTOS, &(int){1}, sizeof(int));
	if (g_socket_address_get_family(G_SOCKET_ADDRESS(r->local)) == G_SOCKET_FAMILY_IPV6)
		setsockopt(st->rtp, IPPROTO_IPV6, IPV6_RECVTCLASS, &(int){1}, sizeof(int));
	if (setsockopt(st->rtp, SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int)) < 0) {
		g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
			    "the kernel gives packets no timestamps: %s", g_strerror(errno));
		return FALSE;
	}
	if (r->dscp && !(trace_send_as(st->rtp, r->dscp, ECN_NOT_ECT, error) &&
			 trace_send_as(st->rtcp, r->dscp, ECN_NOT_ECT, error)))
		return FALSE;
	st->on_rtp = (struct trace_watch){on_rtp, st};
	if (st->dec && dec_prompt(st->dec) &&
	    !trace_loop_add(&r->loop, st->rtp, &st->on_rtp, error))
		return FALSE;
	return trace_loop_add(&r->loop, st->rtcp, &st->on_rtcp, error);
}

static gboolean prepare(struct trace_receiver *r, GError **error)
{
	r->own_ssrc = g_random_int();
	if (!trace_loop_init(&r->loop, error))
		return FALSE;
	if (r->record) {
		r->es = fopen(r->record, "we");
		if (!r->es) {
			g_set_error(error, USAGE_ERROR, 0, "cannot write %s: %s", r->record,
				    g_strerror(errno));
			return FALSE;
		}
	}
	for (gint i = 0; i < r->streams; i++)
		if (!open_stream(r, (guint)i, error))
			return FALSE;
	return TRUE;
}

static void run(struct trace_receiver *r)
{
	struct trace_watch timer = {on_tick, r};
	guint64 packets = 0, foreign = 0;
	gint64 now = monotonic_ns();

	r->tick_ns = now + REPORT_INTERVAL;
	r->end_ns = r->duration > 0 ? now + (gint64)(r->duration * 1e9) : G_MAXINT64;
	r->ahead_ns = realtime_ns() - now;
	r->read_ns = r->armed_ns = now + READ_TO_TELL;
	trace_timer_set(&r->loop, r->armed_ns);
	trace_loop_run(&r->loop, &timer);
	for (gint i = 0; i < r->streams; i++)
		read_packets(&r->stream[i]);
	for (gint i = 0; i < r->streams; i++) {
		packets += r->stream[i].packets;
		foreign += r->stream[i].foreign;
	}
	printf("received %" G_GUINT64_FORMAT " packets, refused %" G_GUINT64_FORMAT " of others\n",
	       packets, foreign);
	if (r->es)
		printf("kept %" G_GUINT64_FORMAT " pictures of the first flow, %" //
		       G_GUINT64_FORMAT " broken\n",
		       r->kept, r->broken);
}

static void close_stream(struct trace_receiver *r, struct trace_stream *st)
{
	if (!st->r)
		return;
	trace_close(&st->rtp);
	trace_close(&st->rtcp);
	dec_free(st->dec);
	if (!close_log(st->rx_csv, "rx.csv"))
		r->status = EXIT_RUN;
}

int cmd_trace_recv(int argc, char **argv)
{
	struct trace_receiver *r = g_new0(struct trace_receiver, 1);
	GError *error = NULL;
	int status;

	g_set_prgname("paqm-streamer trace recv");
	gst_init(NULL, NULL);
	r->streams = 1;
	r->loop = (struct trace_loop){.epoll = -1, .signals = -1};
	h264_unit_init(&r->unit);
	if (parse(r, argc, argv, &error) && prepare(r, &error)) {
		printf("listening on %s\n", r->listen);
		fflush(stdout);
		run(r);
	}
	if (error)
		r->status = report_error(error);
	for (gint i = 0; i < TRACE_FLOWS_MAX; i++)
		close_stream(r, &r->stream[i]);
	if (!close_log(r->es, "the recording"))
		r->status = EXIT_RUN;
	h264_unit_clear(&r->unit);
	trace_loop_clear(&r->loop);
	g_clear_object(&r->local);
	g_free(r->listen);
	g_free(r->log_dir);
	g_free(r->record);
	g_free(r->controller);
	g_free(r->feedback_text);
	status = r->status;
	g_free(r);
	return status;
}
