// SPDX-License-Identifier: GPL-2.0
/* What a stream needs before there is a pipeline: options, sockets, logs. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "streamer/rtp/carry.h"
#include "streamer/encoder/encoded.h"
#include "streamer/outgoing/choice.h"
#include "streamer/send/state.h"
#include "streamer/rtp/wire.h"

static gboolean is_y4m(const char *path)
{
	return g_str_has_suffix(path, ".y4m") && !source_is_pipe(path); /* which cannot be mapped */
}

static gboolean choose_controller(struct sender *s, GError **error)
{
	s->out.kind = parse_controller(s->controller, s->out.control, error);
	return s->out.kind != NULL;
}

/* Routers write into headers: nothing may depend on these. */
static gboolean carrier_fits(const struct sender *s, GError **error)
{
	const char *why = NULL;

	if (s->out.carrier == CARRIER_IN_BAND && s->srtp_key_file)
		why = "--srtp-key: routers cannot write into headers that are authenticated";
	else if (s->out.carrier == CARRIER_IN_BAND && s->out.interlace)
		why = "--interlace";
	else if (s->out.carrier == CARRIER_IN_BAND && s->fec)
		why = "--fec: routers change headers that have been protected";
	if (why)
		g_set_error(error, USAGE_ERROR, 0,
			    "--carrier in-band does not go with %s; use --carrier probe", why);
	return !why;
}

gboolean send_parse(struct sender *s, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"to", 0, 0, G_OPTION_ARG_STRING, &s->to, "Where to send; RTCP on PORT+1",
		 "ADDR:PORT"},
		{"source", 0, 0, G_OPTION_ARG_FILENAME, &s->source,
		 "A y4m file, another video file, or test", "FILE|test"},
		{"loop", 0, 0, G_OPTION_ARG_NONE, &s->loop_source, "Play the file in a loop", NULL},
		{"start-frame", 0, 0, G_OPTION_ARG_INT, &s->start_frame,
		 "Start with picture N of the file", "N"},
		{"fps", 0, 0, G_OPTION_ARG_INT, &s->fps,
		 "Pictures a second, except from a y4m file, which has its own (24)", "N"},
		{"rate-max", 0, 0, G_OPTION_ARG_STRING, &s->rate_max_text,
		 "Highest rate, headers included (3mbit)", "BPS"},
		{"rate-min", 0, 0, G_OPTION_ARG_STRING, &s->rate_min_text,
		 "Lowest rate (300kbit, or rate-max if that is lower)", "BPS"},
		{"bind", 0, 0, G_OPTION_ARG_STRING, &s->bind, "Local address and port",
		 "ADDR[:PORT]"},
		{"ssrc", 0, 0, G_OPTION_ARG_INT64, &s->ssrc, "RTP source identifier", "N"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &s->duration, "Stop after S seconds", "S"},
		{"gop", 0, 0, G_OPTION_ARG_INT, &s->out.gop, "Pictures per quantizer group (12)",
		 "N"},
		{"qp-min", 0, 0, G_OPTION_ARG_INT, &s->out.qp_min, "Finest quantizer (4)", "N"},
		{"encoder", 0, 0, G_OPTION_ARG_STRING, &s->encoder_text,
		 "GStreamer encoder with a live bit rate, and its properties (" OWN_ENCODER ")",
		 "ELEMENT"},
		{"controller", 0, 0, G_OPTION_ARG_STRING, &s->controller,
		 "Rate controller (auto); an unknown name lists them", "NAME[:OPTION=VALUE,...]"},
		{"ecn", 0, 0, G_OPTION_ARG_STRING, &s->ecn_text,
		 "Send as ECN-capable and lower the rate when packets are marked (off)",
		 "off|ect0|ect1"},
		{"seed", 0, 0, G_OPTION_ARG_INT64, &s->seed, "Seed of all random choices", "N"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &s->log_dir,
		 "Write frames.csv, gop.csv, feedback.csv and control.csv to DIR", "DIR"},
		{"paqmd", 0, 0, G_OPTION_ARG_FILENAME, &s->paqmd,
		 "Socket of the feedback daemon, or none ($PAQM_SOCKET, /run/paqmd/client.sock)",
		 "PATH|none"},
		{"carrier", 0, 0, G_OPTION_ARG_STRING, &s->carrier,
		 "Let routers write rates into RTP headers, into probes beside the stream, or "
		 "(icmp) nowhere",
		 "icmp|in-band|probe"},
		{"interlace", 0, 0, G_OPTION_ARG_STRING, &s->interlace_text,
		 "Code parts of each picture separately: lost ones are interpolated",
		 "rows|checkerboard|quarters"},
		{"rtx", 0, 0, G_OPTION_ARG_NONE, &s->out.repairs.rtx,
		 "Retransmit what the receiver misses, within the rate", NULL},
		{"fec", 0, 0, G_OPTION_ARG_INT, &s->fec,
		 "Add PERCENT of forward error correction, within the rate", "PERCENT"},
		{"srtp-key", 0, 0, G_OPTION_ARG_FILENAME, &s->srtp_key_file,
		 "Encrypt with the key in FILE, 60 hexadecimal digits", "FILE"},
		{"no-breaker", 0, 0, G_OPTION_ARG_NONE, &s->no_breaker,
		 "Keep sending without reports: to a receiver without RTCP", NULL},
		{"reuse-keystream", 0, 0, G_OPTION_ARG_NONE, &s->reuse_keystream,
		 "Unsafe, for tests: allow --srtp-key with --seed and --ssrc", NULL},
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
	if (!s->dest || !parse_rates(s->rate_max_text, s->rate_min_text, 300000, &s->out.rate_max,
				     &s->out.rate_min, error))
		return FALSE;
	if (!in_range("--fps", s->fps, 1, SOURCE_FPS_MAX, " pictures a second", error) ||
	    !in_range("--gop", s->out.gop, 1, 600, " pictures", error) ||
	    !in_range("--qp-min", s->out.qp_min, 0, 51, "", error) ||
	    !in_range("--start-frame", s->start_frame, 0, G_MAXINT, "", error) ||
	    !in_range("--ssrc", (double)s->ssrc, s->ssrc == -1 ? -1 : 0, G_MAXUINT32, "", error) ||
	    !in_range("--fec", s->fec, 0, FEC_MOST, " per cent", error) ||
	    !duration_fits(s->duration, error) || !seed_fits(s->seed, error))
		return FALSE;
	s->out.interval = 1.0 / s->fps;
	s->out.repairs.fec = (guint)s->fec;
	if (s->interlace_text && !(s->out.interlace = interlace_find(s->interlace_text))) {
		g_set_error(error, USAGE_ERROR, 0,
			    "--interlace %s: must be rows, checkerboard or quarters",
			    s->interlace_text);
		return FALSE;
	}
	if (!choose_controller(s, error) ||
	    !parse_ecn(s->ecn_text, s->out.kind, &s->out.ecn, error))
		return FALSE;
	if (!parse_carrier(s->carrier, &s->out.carrier, error))
		return FALSE;
	if (s->srtp_key_file && !carry_key_fits(s->seed >= 0   ? "--seed"
						: s->ssrc >= 0 ? "--ssrc"
							       : NULL,
						s->reuse_keystream, error))
		return FALSE;
	if (!carrier_fits(s, error))
		return FALSE;
	s->out.encoder = s->encoder_text;
	s->out.paqmd = s->paqmd;
	s->out.dest = s->dest;
	s->out.headers = wire_headers(g_socket_address_get_family(G_SOCKET_ADDRESS(s->dest)) ==
					      G_SOCKET_FAMILY_IPV6,
				      s->srtp_key_file);
	if (!strcmp(s->source, "test"))
		return TRUE;
	s->from_file = is_y4m(s->source);
	if (!s->from_file) {
		if (!access(s->source, R_OK))
			return TRUE;
		g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errno),
			    "--source %s: %s", s->source, g_strerror(errno));
		return FALSE;
	}
	if (!y4m_open(&s->y4m, s->source, error))
		return FALSE;
	s->out.interval = (double)s->y4m.fps_d / s->y4m.fps_n;
	if (s->out.interlace &&
	    (s->y4m.width % INTERLACE_GRAIN || s->y4m.height % INTERLACE_GRAIN)) {
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
	s->out.start_frame = (guint)s->start_frame % s->y4m.frames;
	s->out.clip_frames = s->y4m.frames;
	return TRUE;
}

/* RTP on an even or given port, RTCP on the next one. */
gboolean send_open_sockets(struct sender *s, GError **error)
{
	GInetSocketAddress *local;
	guint16 port = 0;

	if (s->bind) {
		local = parse_address(s->bind, 65535, error);
		if (!local)
			return FALSE;
		port = g_inet_socket_address_get_port(local);
		if (port == 65535)
			port = 0;
		if (!address_reaches(local, s->dest)) {
			g_set_error(error, USAGE_ERROR, 0,
				    "--bind %s and --to %s: one is an IPv4 address, the other "
				    "IPv6",
				    s->bind, s->to);
			g_object_unref(local);
			return FALSE;
		}
	} else {
		local = address_any(g_socket_address_get_family(G_SOCKET_ADDRESS(s->dest)));
	}
	for (int attempt = 0; attempt < 16; attempt++) {
		s->rtp = open_socket(local, port, error);
		if (!s->rtp)
			break;
		s->rtcp = open_socket(local, socket_port(s->rtp) + 1, port ? error : NULL);
		if (s->rtcp || port)
			break;
		g_clear_object(&s->rtp);
	}
	g_object_unref(local);
	if (s->rtp && s->rtcp) {
		socket_use_link(s->rtp, s->dest);
		socket_use_link(s->rtcp, s->dest);
		s->out.socket = s->rtp;
		return s->out.ecn == ECN_NOT_ECT || ecn_send_as(s->rtp, s->out.ecn, error);
	}
	if (error && !*error)
		g_set_error(
			error, USAGE_ERROR, 0,
			"no two neighbouring UDP ports are free; name one with --bind ADDR:PORT");
	return FALSE;
}

gboolean send_open_logs(struct sender *s, GError **error)
{
	struct outgoing *o = &s->out;

	if (!s->log_dir)
		return TRUE;
	o->frames_csv = open_log(s->log_dir, "frames.csv", ENCODED_HEADER, error);
	s->gop_csv =
		o->frames_csv ? open_log(s->log_dir, "gop.csv", ENCODED_GROUP_HEADER, error) : NULL;
	o->feedback_csv =
		s->gop_csv ? open_log(s->log_dir, "feedback.csv", ADVICE_HEADER, error) : NULL;
	o->control_csv =
		o->feedback_csv ? open_log(s->log_dir, "control.csv", RATE_HEADER, error) : NULL;
	return o->control_csv != NULL;
}
