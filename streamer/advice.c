// SPDX-License-Identifier: GPL-2.0
/* libpaqmclient in GLib's main loop; see advice.h. */
#include "streamer/advice.h"

#include <errno.h>
#include <glib-unix.h>

#include "streamer/options.h"

struct advice {
	struct paqm_client *client;
	int flow;
	guint watch;
	gboolean told; /* the user knows that paqmd is not there */
	advice_fn fn;
	gpointer data;
};

static gboolean ready(gint fd, GIOCondition condition, gpointer data)
{
	struct paqm_client_advice news;
	struct advice *a = data;
	const char *trouble;

	(void)fd;
	(void)condition;
	while (paqm_client_next(a->client, &news) > 0) {
		if (news.cause == PAQM_CLIENT_REFUSED)
			g_printerr("paqm-streamer: paqmd refused the flow: %s\n",
				   g_strerror(news.error));
		a->fn(&news, a->data);
	}
	trouble = paqm_client_trouble(a->client);
	if (trouble && !a->told)
		g_printerr("paqm-streamer: no advice from paqmd at %s (%s); going on without, "
			   "trying again\n",
			   paqm_client_path(a->client), trouble);
	a->told = trouble != NULL;
	return G_SOURCE_CONTINUE;
}

struct advice *advice_new(const char *path, const struct advice_flow *flow, advice_fn fn,
			  gpointer data)
{
	struct paqm_client *c = paqm_client_open(path);
	struct advice *a;
	char *from = NULL, *to = g_inet_address_to_string(flow->to);

	if (!c) {
		g_printerr("paqm-streamer: no advice from paqmd: %s\n", g_strerror(errno));
		g_free(to);
		return NULL;
	}
	a = g_new0(struct advice, 1);
	a->client = c;
	a->fn = fn;
	a->data = data;
	if (flow->from && !g_inet_address_get_is_any(flow->from))
		from = g_inet_address_to_string(flow->from);
	a->flow = paqm_client_add(c, from, flow->from_port, to, flow->to_port, flow->ssrc,
				  flow->floor_bps, flow->ceil_bps);
	paqm_client_timing(c, a->flow, (uint32_t)(flow->gop_s * 1e6),
			   (uint32_t)(flow->answer_s * 1e6));
	a->watch = g_unix_fd_add(paqm_client_fd(c), G_IO_IN, ready, a);
	g_free(from);
	g_free(to);
	return a;
}

gboolean advice_connected(const struct advice *a)
{
	return a && !paqm_client_trouble(a->client);
}

void advice_status(struct advice *a, guint64 wire_bps, guint gop, guint qp)
{
	int err = paqm_client_status(a->client, a->flow, wire_bps, gop, qp);

	if (err < 0)
		g_debug("status to paqmd lost: %s", g_strerror(-err));
}

void advice_free(struct advice *a)
{
	if (!a)
		return;
	g_source_remove(a->watch);
	paqm_client_close(a->client);
	g_free(a);
}

const char *advice_cause(const struct paqm_client_advice *a)
{
	static const char *const causes[] = {"none", "erf", "ecf", "expired", "lost", "refused"};

	return (guint)a->cause < G_N_ELEMENTS(causes) ? causes[a->cause] : "unknown";
}

void advice_log(FILE *log, const struct paqm_client_advice *a)
{
	if (log)
		fprintf(log, "%" G_GINT64_FORMAT ",%s,%s,%.9g,%" G_GUINT64_FORMAT "\n",
			realtime_ns(), a->router[0] ? a->router : "::", advice_cause(a),
			(double)a->value, (guint64)a->rate_bps);
}
