// SPDX-License-Identifier: GPL-2.0
/* libpaqmclient in GLib's main loop; see advice.h. */
#include "streamer/outgoing/advice.h"

#include <errno.h>
#include <glib-unix.h>

#include "streamer/options.h"

struct user {
	advice_fn fn;
	gpointer data;
};

struct advice {
	struct paqm_client *client;
	GArray *users; /* of flows, by number */
	guint watch;
	gboolean told; /* the user knows that paqmd is not there */
};

static gboolean ready(gint fd, GIOCondition condition, gpointer data)
{
	struct paqm_client_advice news;
	struct advice *a = data;
	const char *trouble;

	(void)fd;
	(void)condition;
	while (paqm_client_next(a->client, &news) > 0) {
		const struct user *u = &g_array_index(a->users, struct user, news.flow);

		if (news.cause == PAQM_CLIENT_REFUSED)
			g_printerr("paqm-streamer: paqmd refused the flow: %s\n",
				   g_strerror(news.error));
		u->fn(&news, u->data);
	}
	trouble = paqm_client_trouble(a->client);
	if (trouble && !a->told)
		g_printerr("paqm-streamer: no advice from paqmd at %s (%s); going on without, "
			   "trying again\n",
			   paqm_client_path(a->client), trouble);
	a->told = trouble != NULL;
	return G_SOURCE_CONTINUE;
}

struct advice *advice_new(const char *path)
{
	struct paqm_client *c;
	struct advice *a;

	if (!g_strcmp0(path, "none"))
		return NULL;
	c = paqm_client_open(path);
	if (!c) {
		g_printerr("paqm-streamer: no advice from paqmd: %s\n", g_strerror(errno));
		return NULL;
	}
	a = g_new0(struct advice, 1);
	a->client = c;
	a->users = g_array_new(FALSE, TRUE, sizeof(struct user));
	a->watch = g_unix_fd_add(paqm_client_fd(c), G_IO_IN, ready, a);
	return a;
}

int advice_add(struct advice *a, const struct advice_flow *flow, advice_fn fn, gpointer data)
{
	char *from = NULL, *to;
	int number;

	if (!a)
		return -1;
	to = g_inet_address_to_string(flow->to);
	if (flow->from && !g_inet_address_get_is_any(flow->from))
		from = g_inet_address_to_string(flow->from);
	number = paqm_client_add(a->client, from, flow->from_port, to, flow->to_port, flow->ssrc,
				 flow->floor_bps, flow->ceil_bps);
	g_free(from);
	g_free(to);
	if (number < 0) {
		g_printerr("paqm-streamer: no advice from paqmd: %s\n", g_strerror(-number));
		return number;
	}
	if ((guint)number >= a->users->len)
		g_array_set_size(a->users, (guint)number + 1);
	g_array_index(a->users, struct user, number) = (struct user){fn, data};
	paqm_client_timing(a->client, number, (uint32_t)(flow->gop_s * 1e6),
			   (uint32_t)(flow->answer_s * 1e6));
	return number;
}

gboolean advice_connected(const struct advice *a)
{
	return a && !paqm_client_trouble(a->client);
}

void advice_status(struct advice *a, int flow, guint64 wire_bps, guint gop, guint qp)
{
	int err = paqm_client_status(a->client, flow, wire_bps, gop, qp);

	if (err < 0)
		g_debug("status to paqmd lost: %s", g_strerror(-err));
}

void advice_free(struct advice *a)
{
	if (!a)
		return;
	g_source_remove(a->watch);
	paqm_client_close(a->client);
	g_array_free(a->users, TRUE);
	g_free(a);
}

struct ctl_advice advice_control(const struct paqm_client_advice *a)
{
	return (struct ctl_advice){.rate = (double)a->rate_bps,
				   .value = a->value,
				   .router = a->router_id,
				   .seq = a->seq,
				   .routers = a->routers};
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
