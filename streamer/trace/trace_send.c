// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer send --trace: sends a quality ladder live; send --levels: frames of an application
 * with five levels. One thread serves all flows of a process
 * (trace_flow.c), another hears advice.
 */
#include <gst/gst.h>
#include <string.h>

#include "streamer/options.h"
#include "streamer/outgoing/choice.h"
#include "streamer/rtp/wire.h"
#include "streamer/trace/trace_flow.h"

#define TICK_NS (50 * G_GINT64_CONSTANT(1000000))
#define GRID_NS 1000000
#define BETA 1.5 /* of RA-SVBR's bucket */

/* The grid on which packets leave: flows that are due within one step are served together. */
static gint64 on_grid(gint64 t)
{
	return (t + GRID_NS - 1) / GRID_NS * GRID_NS;
}

static void on_timer(gpointer data)
{
	struct trace_sender *s = data;
	gint64 now = monotonic_ns(), next;
	gboolean in_train = FALSE;

	g_mutex_lock(&s->lock);
	if (s->tick_ns <= now) {
		for (gint i = 0; i < s->flows; i++)
			trace_flow_tick(&s->flow[i], now);
		s->tick_ns = now + TICK_NS;
	}
	next = s->tick_ns;
	for (gint i = 0; i < s->flows; i++) {
		struct trace_flow *f = &s->flow[i];

		if (s->duration > 0 && now >= s->begin_ns + (gint64)(s->duration * 1e9))
			trace_flow_end(f);
		trace_flow_serve(f, now);
		next = MIN(next, f->due);
		in_train |= f->in_train; /* its gaps may be shorter than the grid */
	}
	g_mutex_unlock(&s->lock);
	/* the same with frames of one packet: they would meet in the queue */
	trace_timer_set(&s->loop, in_train || s->app ? next : on_grid(next));
}

/* --levels: its application, and the controller with its rates unless another is named. */
static gboolean parse_levels(struct trace_sender *s, GError **error)
{
	const double *rate;

	s->app = levels_find(s->levels);
	if (!s->app || s->ladder_dir) {
		g_set_error(error, USAGE_ERROR, 0,
			    s->app ? "--levels %s does not go with --trace"
				   : "--levels %s: must be mm, mpeg or mpeg12",
			    s->levels);
		return FALSE;
	}
	s->packet = s->packet ? s->packet : (gint)s->app->packet;
	rate = s->app->rate;
	if (!s->controller)
		s->controller = g_strdup_printf("levels:l0=%.0f,l1=%.0f,l2=%.0f,l3=%.0f,l4=%.0f",
						rate[0], rate[1], rate[2], rate[3], rate[4]);
	if (!s->rate_max_text)
		s->rate_max_text = g_strdup_printf("%.0f", rate[LEVELS - 1]);
	return TRUE;
}

/* What only a ladder has, or only an application with levels. */
static gboolean pictures_fit(const struct trace_sender *s, GError **error)
{
	const char *option = NULL;

	if (!s->app)
		option = s->packet ? "--packet" : NULL;
	else if (s->loops)
		option = "--loop";
	else if (s->burst)
		option = "--burst";
	else if (s->a_priori)
		option = "--a-priori";
	else if (s->beta != BETA)
		option = "--beta";
	if (option)
		g_set_error(error, USAGE_ERROR, 0, "%s goes with %s only", option,
			    s->app ? "--trace" : "--levels");
	return !option;
}

static gboolean parse(struct trace_sender *s, int argc, char **argv, GError **error)
{
	GOptionEntry entries[] = {
		{"trace", 0, 0, G_OPTION_ARG_FILENAME, &s->ladder_dir,
		 "The ladder, as made by paqm-trace pre", "DIR"},
		{"levels", 0, 0, G_OPTION_ARG_STRING, &s->levels,
		 "Instead: frames of an application with five rates, RTCP on the port of RTP",
		 "mm|mpeg|mpeg12"},
		{"packet", 0, 0, G_OPTION_ARG_INT, &s->packet,
		 "With --levels: the longest packet, all headers included (1000, mpeg 1500)",
		 "BYTES"},
		{"dscp", 0, 0, G_OPTION_ARG_INT, &s->dscp, "Mark all media packets (0)", "N"},
		{"to", 0, 0, G_OPTION_ARG_STRING, &s->to,
		 "Where to send; flow N to PORT+2N, its RTCP one above", "ADDR:PORT"},
		{"flows", 0, 0, G_OPTION_ARG_INT, &s->flows, "Flows (1)", "N"},
		{"spread", 0, 0, G_OPTION_ARG_DOUBLE, &s->spread,
		 "Start all flows but the first at random times within S seconds (0)", "S"},
		{"loop", 0, 0, G_OPTION_ARG_NONE, &s->loops,
		 "At the end of the clip continue the first flow, too, with a random group", NULL},
		{"burst", 0, 0, G_OPTION_ARG_NONE, &s->burst,
		 "Send all packets of a picture at once instead of spreading them", NULL},
		{"a-priori", 0, 0, G_OPTION_ARG_NONE, &s->a_priori,
		 "Plan with the exact size of the next group, as published; live encoders cannot",
		 NULL},
		{"no-reports", 0, 0, G_OPTION_ARG_NONE, &s->no_reports,
		 "Send no sender reports: the published sources were one flow each, without RTCP",
		 NULL},
		{"controller", 0, 0, G_OPTION_ARG_STRING, &s->controller,
		 "Rate controller, as without --trace (auto)", "NAME[:OPTION=VALUE,...]"},
		{"ecn", 0, 0, G_OPTION_ARG_STRING, &s->ecn_text,
		 "Send as ECN-capable and lower the rate when packets are marked (off)",
		 "off|ect0|ect1"},
		{"beta", 0, 0, G_OPTION_ARG_DOUBLE, &s->beta,
		 "Size of the bucket over the allowance (1.5)", "X"},
		{"rate-max", 0, 0, G_OPTION_ARG_STRING, &s->rate_max_text,
		 "Highest rate of a flow, headers included (3mbit; --levels: the fifth)", "BPS"},
		{"rate-min", 0, 0, G_OPTION_ARG_STRING, &s->rate_min_text,
		 "Lowest rate (200kbit; --levels: the first; or rate-max if that is lower)", "BPS"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &s->duration,
		 "Stop all flows after S seconds", "S"},
		{"seed", 0, 0, G_OPTION_ARG_INT64, &s->seed, "Seed of all random choices", "N"},
		{"log", 0, 0, G_OPTION_ARG_FILENAME, &s->log_dir,
		 "Write flowNNN/tx.csv, gop.csv and feedback.csv, flow000/control.csv to DIR",
		 "DIR"},
		{"paqmd", 0, 0, G_OPTION_ARG_FILENAME, &s->paqmd,
		 "Socket of the feedback daemon, or none ($PAQM_SOCKET, /run/paqmd/client.sock)",
		 "PATH|none"},
		{0},
	};

	if (!parse_options(
		    NULL, "Sends a ready-made quality ladder live, at the rate the network grants.",
		    entries, &argc, &argv, error))
		return FALSE;
	if (s->levels && !parse_levels(s, error))
		return FALSE;
	if (!s->to || !(s->ladder_dir || s->app)) {
		g_set_error(error, USAGE_ERROR, 0,
			    "%s is missing; see paqm-streamer send --trace --help",
			    s->to ? "the directory of --trace, or --levels," : "--to");
		return FALSE;
	}
	s->dest = parse_address(s->to, 0, error);
	if (!s->dest || !parse_rates(s->rate_max_text, s->rate_min_text,
				     s->app ? (guint64)s->app->rate[0] : 200000, &s->rate_max,
				     &s->rate_min, error))
		return FALSE;
	s->kind = parse_controller(s->controller, s->control, error);
	if (!s->kind)
		return FALSE;
	if (s->kind->element) {
		g_set_error(
			error, USAGE_ERROR, 0,
			"--controller %s: not in trace mode, since it needs the GStreamer element "
			"%s; choose another",
			s->controller, s->kind->element);
		return FALSE;
	}
	if (s->kind->extension && !s->app) {
		g_set_error(error, USAGE_ERROR, 0, "--controller %s: only with --levels",
			    s->controller);
		return FALSE;
	}
	if (!parse_ecn(s->ecn_text, s->kind, &s->ecn, error))
		return FALSE;
	if (!trace_ports_fit(s->dest, s->flows, error) ||
	    !in_range("--spread", s->spread, 0, 3600, " seconds", error) ||
	    !duration_fits(s->duration, error) || !seed_fits(s->seed, error) ||
	    !pictures_fit(s, error) || !in_range("--beta", s->beta, 0.5, 100, "", error) ||
	    !in_range("--dscp", s->dscp, 0, 63, "", error) ||
	    (s->app && !in_range("--packet", s->packet, 100, WIRE_LONGEST, " bytes", error)))
		return FALSE;
	return s->app || ladder_open(&s->ladder, s->ladder_dir, error);
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
	s->interval_ns =
		s->app ? levels_step_ns(s->app, (guint)s->packet, s->app->rate[0])
		       : (gint64)gst_util_uint64_scale(1000000000, (guint64)s->ladder.fps_d,
						       (guint64)s->ladder.fps_n);
	s->ctl_params = (struct ctl_params){.rate_min = (double)s->rate_min,
					    .rate_max = (double)s->rate_max,
					    .packet = s->app ? s->packet : WIRE_PACKET,
					    .pause = s->app ? levels_pause(s->app, (guint)s->packet)
							    : (double)s->interval_ns / 1e9,
					    .option = s->control,
					    .ecn = ecn_for_controller(s->ecn)};
	s->decay = ctl_decay(s->kind, s->control);
	if (!trace_loop_init(&s->loop, error))
		return FALSE;
	s->headers = wire_ip_udp(g_socket_address_get_family(G_SOCKET_ADDRESS(s->dest)) ==
				 G_SOCKET_FAMILY_IPV6) +
		     RTP_HEADER;
	if (s->a_priori && !s->app)
		plan_ahead(s);
	s->advice = advice_new(s->paqmd);
	for (gint i = 0; i < s->flows; i++)
		if (!trace_flow_open(s, (guint)i, error))
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
		trace_flow_start(&s->flow[i]);
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

int cmd_trace_send(int argc, char **argv)
{
	struct trace_sender *s = g_new0(struct trace_sender, 1);
	GError *error = NULL;
	int status;

	g_set_prgname("paqm-streamer trace send");
	gst_init(NULL, NULL);
	s->flows = 1;
	s->beta = BETA;
	s->seed = SEED_NONE;
	s->loop = (struct trace_loop){.epoll = -1, .signals = -1};
	g_mutex_init(&s->lock);
	if (parse(s, argc, argv, &error) && prepare(s, &error)) {
		printf("sending %d flows of %s to %s, %.0f to %.0f kbit/s each\n", s->flows,
		       s->app ? s->app->name : s->ladder_dir, s->to, s->rate_min / 1e3,
		       s->rate_max / 1e3);
		fflush(stdout);
		run(s);
	}
	advice_free(s->advice);
	if (error)
		s->status = report_error(error);
	for (gint i = 0; i < TRACE_FLOWS_MAX; i++)
		if (!trace_flow_close(&s->flow[i]))
			s->status = EXIT_RUN;
	ladder_close(&s->ladder);
	trace_loop_clear(&s->loop);
	g_mutex_clear(&s->lock);
	g_clear_pointer(&s->rand, g_rand_free);
	g_clear_object(&s->dest);
	g_free(s->open_bits);
	g_free(s->to);
	g_free(s->ladder_dir);
	g_free(s->levels);
	g_free(s->controller);
	g_free(s->ecn_text);
	g_free(s->log_dir);
	g_free(s->paqmd);
	g_free(s->rate_max_text);
	g_free(s->rate_min_text);
	status = s->status;
	g_free(s);
	return status;
}
