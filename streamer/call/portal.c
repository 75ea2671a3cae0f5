// SPDX-License-Identifier: GPL-2.0
/* The screen of a Wayland session; see portal.h. */
#include "streamer/call/portal.h"

#include <unistd.h>

#include <gio/gio.h>
#include <gio/gunixfdlist.h>
#include <gst/gst.h>

#define NAME "org.freedesktop.portal.Desktop"
#define PATH "/org/freedesktop/portal/desktop"
#define CAST "org.freedesktop.portal.ScreenCast"
#define TOKEN "paqm"
#define USER_S 120 /* for an answer */

/* Values of the interface. */
#define MONITOR 1U
#define WINDOW 2U
#define CURSOR_EMBEDDED 2U
enum { GIVEN, CANCELLED };

struct portal {
	GDBusConnection *bus;
	char *session; /* object path */
	guint32 node;  /* of PipeWire */
	int remote;    /* a connection to it */
};

/* What a request waits for: it answers by a signal, which may be a long time after the call. */
struct answer {
	GMainLoop *loop;
	GVariant *results; /* NULL: too late */
	guint32 code;
};

static void on_response(GDBusConnection *bus, const char *sender, const char *path,
			const char *interface, const char *signal, GVariant *words, gpointer data)
{
	struct answer *a = data;

	(void)bus;
	(void)sender;
	(void)path;
	(void)interface;
	(void)signal;
	if (!a->results)
		g_variant_get(words, "(u@a{sv})", &a->code, &a->results);
	g_main_loop_quit(a->loop);
}

static gboolean too_late(gpointer loop)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

/* The object that will answer, which is known before: the signal cannot be missed. */
static char *request_path(GDBusConnection *bus)
{
	char *sender = g_strdup(g_dbus_connection_get_unique_name(bus) + 1), *path;

	g_strdelimit(sender, ".", '_');
	path = g_strdup_printf(PATH "/request/%s/" TOKEN, sender);
	g_free(sender);
	return path;
}

/*
 * One method that is a request. @words: its arguments, floating, of which the last are options with
 * the handle_token TOKEN. Returns the results; NULL: @error says why there are none.
 */
static GVariant *request(struct portal *p, const char *method, GVariant *words, GError **error)
{
	GMainContext *context = g_main_context_new();
	struct answer a = {.loop = g_main_loop_new(context, FALSE)};
	GSource *timer = g_timeout_source_new_seconds(USER_S);
	char *path = request_path(p->bus);
	GVariant *called;
	guint watch;

	g_main_context_push_thread_default(context);
	watch = g_dbus_connection_signal_subscribe(p->bus, NAME, "org.freedesktop.portal.Request",
						   "Response", path, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
						   on_response, &a, NULL);
	called = g_dbus_connection_call_sync(p->bus, NAME, PATH, CAST, method, words,
					     G_VARIANT_TYPE("(o)"), G_DBUS_CALL_FLAGS_NONE, -1,
					     NULL, error);
	if (called) {
		g_source_set_callback(timer, too_late, a.loop, NULL);
		g_source_attach(timer, context);
		g_main_loop_run(a.loop);
		g_variant_unref(called);
		if (!a.results)
			g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
				    "nobody has chosen one for %d s", USER_S);
		else if (a.code == CANCELLED)
			g_set_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED,
				    "you have chosen none");
		else if (a.code != GIVEN)
			g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
				    "the desktop's portal fails at %s", method);
		if (a.results && a.code != GIVEN)
			g_clear_pointer(&a.results, g_variant_unref);
	}
	g_dbus_connection_signal_unsubscribe(p->bus, watch);
	g_main_context_pop_thread_default(context);
	g_source_destroy(timer);
	g_source_unref(timer);
	g_main_loop_unref(a.loop);
	g_main_context_unref(context);
	g_free(path);
	return a.results;
}

/* A property of the portal, or @otherwise if an older one does not have it. */
static guint32 property(const struct portal *p, const char *name, guint32 otherwise)
{
	GVariant *words = g_dbus_connection_call_sync(
		p->bus, NAME, PATH, "org.freedesktop.DBus.Properties", "Get",
		g_variant_new("(ss)", CAST, name), G_VARIANT_TYPE("(v)"), G_DBUS_CALL_FLAGS_NONE,
		-1, NULL, NULL);
	GVariant *value = NULL;
	guint32 n = otherwise;

	if (words)
		g_variant_get(words, "(v)", &value);
	if (value && g_variant_is_of_type(value, G_VARIANT_TYPE_UINT32))
		n = g_variant_get_uint32(value);
	g_clear_pointer(&value, g_variant_unref);
	g_clear_pointer(&words, g_variant_unref);
	return n;
}

static gboolean create(struct portal *p, GError **error)
{
	GVariant *got = request(p, "CreateSession",
				g_variant_new_parsed("({'handle_token': <'" TOKEN "'>, "
						     "'session_handle_token': <'" TOKEN "'>},)"),
				error);
	gboolean ok = got && g_variant_lookup(got, "session_handle", "s", &p->session);

	if (got && !ok)
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
			    "the desktop's portal names no session");
	g_clear_pointer(&got, g_variant_unref);
	return ok;
}

static gboolean choose(struct portal *p, GError **error)
{
	guint32 types = property(p, "AvailableSourceTypes", MONITOR) & (MONITOR | WINDOW);
	GVariantBuilder options;
	GVariant *got;

	g_variant_builder_init(&options, G_VARIANT_TYPE_VARDICT);
	g_variant_builder_add(&options, "{sv}", "handle_token", g_variant_new_string(TOKEN));
	g_variant_builder_add(&options, "{sv}", "types", g_variant_new_uint32(types));
	if (property(p, "AvailableCursorModes", 0) & CURSOR_EMBEDDED)
		g_variant_builder_add(&options, "{sv}", "cursor_mode",
				      g_variant_new_uint32(CURSOR_EMBEDDED));
	got = request(p, "SelectSources", g_variant_new("(oa{sv})", p->session, &options), error);
	if (got)
		g_variant_unref(got);
	return got != NULL;
}

static gboolean start(struct portal *p, GError **error)
{
	GVariant *got = request(
		p, "Start",
		g_variant_new_parsed("(%o, '', {'handle_token': <'" TOKEN "'>})", p->session),
		error);
	GVariantIter *streams = NULL;
	gboolean ok = got && g_variant_lookup(got, "streams", "a(ua{sv})", &streams) &&
		      g_variant_iter_next(streams, "(ua{sv})", &p->node, NULL);

	if (got && !ok)
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
			    "the desktop's portal gives no stream");
	g_clear_pointer(&streams, g_variant_iter_free);
	g_clear_pointer(&got, g_variant_unref);
	return ok;
}

static gboolean connect_pipewire(struct portal *p, GError **error)
{
	GUnixFDList *fds = NULL;
	GVariant *got = g_dbus_connection_call_with_unix_fd_list_sync(
		p->bus, NAME, PATH, CAST, "OpenPipeWireRemote",
		g_variant_new_parsed("(%o, @a{sv} {})", p->session), G_VARIANT_TYPE("(h)"),
		G_DBUS_CALL_FLAGS_NONE, -1, NULL, &fds, NULL, error);
	gint32 at = 0;

	if (got) {
		g_variant_get(got, "(h)", &at);
		p->remote = g_unix_fd_list_get(fds, at, error);
		g_variant_unref(got);
	}
	g_clear_object(&fds);
	return p->remote >= 0;
}

struct portal *portal_open(GError **error)
{
	struct portal *p = g_new0(struct portal, 1);
	GError *why = NULL;

	p->remote = -1;
	if (!gst_registry_check_feature_version(gst_registry_get(), "pipewiresrc", 0, 3, 0))
		g_set_error(&why, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
			    "in a Wayland session it comes by PipeWire: install "
			    "gstreamer1.0-pipewire");
	else
		p->bus = g_bus_get_sync(G_BUS_TYPE_SESSION, NULL, &why);
	if (p->bus)
		g_printerr(
			"paqm-streamer: choose a screen or a window in your desktop's dialogue\n");
	if (p->bus && create(p, &why) && choose(p, &why) && start(p, &why) &&
	    connect_pipewire(p, &why))
		return p;
	if (g_dbus_error_is_remote_error(why))
		g_dbus_error_strip_remote_error(why);
	g_propagate_prefixed_error(error, why, "--source screen: ");
	portal_free(p);
	return NULL;
}

/* Without a change a desktop gives no picture: the last one is repeated meanwhile. */
char *portal_elements(const struct portal *p)
{
	return g_strdup_printf("pipewiresrc fd=%d path=%u do-timestamp=true keepalive-time=100",
			       p->remote, p->node);
}

void portal_free(struct portal *p)
{
	if (!p)
		return;
	if (p->session)
		g_dbus_connection_call(p->bus, NAME, p->session, "org.freedesktop.portal.Session",
				       "Close", NULL, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL,
				       NULL);
	if (p->bus)
		g_dbus_connection_flush_sync(p->bus, NULL, NULL);
	if (p->remote >= 0)
		close(p->remote);
	g_clear_object(&p->bus);
	g_free(p->session);
	g_free(p);
}
