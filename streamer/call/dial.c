// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting with patience; see dial.h. It waits in a main context of its own: a server of names
 * that never answers keeps a lookup for many seconds, and people are to hear of that before.
 */
#include "streamer/call/dial.h"

#define RETRY_MS 500

struct dial {
	GNetworkAddress *where;
	GCancellable *stop;
	gboolean patient, resolved, told, done;
	GSocketConnection *connection;
	GError *why, *last;
};

/* Nobody listens yet, the way there or the server of names is not up yet. */
static gboolean may_pass(const GError *why)
{
	return g_error_matches(why, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED) ||
	       g_error_matches(why, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE) ||
	       g_error_matches(why, G_IO_ERROR, G_IO_ERROR_NETWORK_UNREACHABLE) ||
	       g_error_matches(why, G_RESOLVER_ERROR, G_RESOLVER_ERROR_TEMPORARY_FAILURE);
}

static void on_event(GSocketClient *client, GSocketClientEvent event, GSocketConnectable *to,
		     GIOStream *stream, gpointer data)
{
	struct dial *d = data;

	(void)client;
	(void)to;
	(void)stream;
	if (event == G_SOCKET_CLIENT_RESOLVED)
		d->resolved = TRUE;
}

static gboolean on_soon(gpointer data)
{
	const char *host = g_network_address_get_hostname(((struct dial *)data)->where);
	struct dial *d = data;
	char *how_long = d->patient ? g_strdup("until it works")
				    : g_strdup_printf("for %d s in all", DIAL_S);

	d->told = TRUE;
	if (!d->resolved)
		g_printerr("paqm-streamer: cannot resolve '%s' yet (%s); trying again %s\n", host,
			   d->last ? d->last->message : "no name server answers", how_long);
	else
		g_printerr("paqm-streamer: %s port %u cannot be reached yet (%s); trying again "
			   "%s\n",
			   host, g_network_address_get_port(d->where),
			   d->last ? d->last->message : "no answer", how_long);
	g_free(how_long);
	return G_SOURCE_REMOVE;
}

static gboolean on_late(gpointer data)
{
	g_cancellable_cancel(((struct dial *)data)->stop);
	return G_SOURCE_REMOVE;
}

static void on_connected(GObject *client, GAsyncResult *result, gpointer data)
{
	struct dial *d = data;

	d->connection = g_socket_client_connect_finish(G_SOCKET_CLIENT(client), result, &d->why);
	d->done = TRUE;
}

static gboolean on_pause(gpointer data)
{
	((struct dial *)data)->done = TRUE;
	return G_SOURCE_REMOVE;
}

static GSource *after(GMainContext *context, guint ms, GSourceFunc fn, struct dial *d)
{
	GSource *source = g_timeout_source_new(ms);

	g_source_set_callback(source, fn, d, NULL);
	g_source_attach(source, context);
	return source;
}

static void end_source(GSource *source)
{
	if (!source)
		return;
	g_source_destroy(source);
	g_source_unref(source);
}

static void wait_until_done(GMainContext *context, struct dial *d)
{
	while (!d->done)
		g_main_context_iteration(context, TRUE);
	d->done = FALSE;
}

/* Why it came to nothing, once the time is over. */
static void give_up(struct dial *d, GError **error)
{
	if (!d->why || g_error_matches(d->why, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
		g_clear_error(&d->why);
		d->why = g_steal_pointer(&d->last);
	}
	if (!d->why && !d->resolved)
		g_set_error(&d->why, G_RESOLVER_ERROR, G_RESOLVER_ERROR_TEMPORARY_FAILURE,
			    "no name server answers");
	else if (!d->why)
		g_set_error(&d->why, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "no answer for %d s",
			    DIAL_S);
	g_propagate_error(error, g_steal_pointer(&d->why));
}

GSocketConnection *dial(GNetworkAddress *where, gboolean patient, GError **error)
{
	struct dial d = {.where = where, .patient = patient, .stop = g_cancellable_new()};
	GMainContext *context = g_main_context_new();
	GSocketClient *client = g_socket_client_new();
	GSource *soon, *late;

	g_main_context_push_thread_default(context);
	g_signal_connect(client, "event", G_CALLBACK(on_event), &d);
	/* for one attempt: a host that has gone answers nothing */
	g_socket_client_set_timeout(client, DIAL_S);
	soon = after(context, DIAL_SOON_MS, on_soon, &d);
	late = patient ? NULL : after(context, DIAL_S * 1000, on_late, &d);
	for (;;) {
		GSource *pause;

		g_socket_client_connect_async(client, G_SOCKET_CONNECTABLE(where), d.stop,
					      on_connected, &d);
		wait_until_done(context, &d);
		if (d.connection || g_cancellable_is_cancelled(d.stop) ||
		    (!patient && !may_pass(d.why)))
			break;
		g_clear_error(&d.last);
		d.last = g_steal_pointer(&d.why);
		pause = after(context, RETRY_MS, on_pause, &d);
		wait_until_done(context, &d);
		end_source(pause);
		if (g_cancellable_is_cancelled(d.stop))
			break;
	}
	end_source(soon);
	end_source(late);
	g_main_context_pop_thread_default(context);
	if (!d.connection)
		give_up(&d, error);
	g_clear_error(&d.why);
	g_clear_error(&d.last);
	g_object_unref(client);
	g_object_unref(d.stop);
	g_main_context_unref(context);
	return d.connection;
}
