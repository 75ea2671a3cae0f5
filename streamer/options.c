// SPDX-License-Identifier: GPL-2.0
/* Options, addresses and log files of paqm-streamer. */
#include "streamer/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

G_DEFINE_QUARK(paqm - streamer - usage, usage)

/**
 * parse_options() - the options of a command
 * @operands: what else may follow them, for --help; NULL: nothing
 */
gboolean parse_options(const char *operands, const char *summary, const GOptionEntry *entries,
		       int *argc, char ***argv, GError **error)
{
	GOptionContext *ctx = g_option_context_new(operands);
	gboolean ok;

	g_option_context_set_summary(ctx, summary);
	g_option_context_add_main_entries(ctx, entries, NULL);
	ok = g_option_context_parse(ctx, argc, argv, error);
	g_option_context_free(ctx);
	if (ok && !operands && *argc > 1) {
		g_set_error(error, USAGE_ERROR, 0, "unexpected argument '%s'; see --help",
			    (*argv)[1]);
		return FALSE;
	}
	return ok;
}

/* Says what ended a command, frees it. Return: the exit status. */
int report_error(GError *error)
{
	int status = error->domain == USAGE_ERROR || error->domain == G_OPTION_ERROR ? EXIT_USAGE
										     : EXIT_RUN;

	g_printerr("paqm-streamer: %s\n", error->message);
	g_error_free(error);
	return status;
}

/* "800000", "800kbit", "1.5mbit": bit/s. */
gboolean parse_rate(const char *text, guint64 *rate, GError **error)
{
	static const struct {
		const char *suffix;
		double factor;
	} units[] = {{"", 1}, {"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
	char *end;
	double v = g_ascii_strtod(text, &end);

	if (end != text && isfinite(v) && v > 0) {
		for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
			if (g_ascii_strcasecmp(end, units[i].suffix))
				continue;
			v *= units[i].factor;
			if (v < 1000 || v > 4e9)
				break;
			*rate = (guint64)v;
			return TRUE;
		}
	}
	g_set_error(error, USAGE_ERROR, 0,
		    "'%s' is not a rate: give 1000 bit/s to 4gbit, such as 800kbit or 1.5mbit",
		    text);
	return FALSE;
}

/* "192.0.2.1:5004", "[2001:db8::1]:5004"; without port if there is a default. */
GInetSocketAddress *parse_address(const char *text, guint16 default_port, GError **error)
{
	GInetAddress *addr;
	GSocketAddress *sa;
	guint64 port = default_port;
	char *host = g_strdup(text), *colon = strrchr(host, ':'), *name = host;

	if (*host == '[') {
		char *bracket = strchr(host, ']');

		name = host + 1;
		if (bracket)
			*bracket = 0;
		if (colon && bracket && colon < bracket)
			colon = NULL;
	} else if (colon && strchr(host, ':') != colon) {
		colon = NULL; /* a bare IPv6 address */
	}
	if (colon) {
		*colon = 0;
		if (!g_ascii_string_to_unsigned(colon + 1, 10, 1, 65534, &port, NULL))
			port = 0;
	}
	addr = g_inet_address_new_from_string(name);
	if (!addr || (!port && (colon || !default_port))) {
		g_set_error(error, USAGE_ERROR, 0,
			    "'%s' is not an address: give ADDR:PORT, such as 192.0.2.1:5004 or "
			    "[2001:db8::1]:5004",
			    text);
		g_clear_object(&addr);
		g_free(host);
		return NULL;
	}
	sa = g_inet_socket_address_new(addr, (guint16)port);
	g_object_unref(addr);
	g_free(host);
	return G_INET_SOCKET_ADDRESS(sa);
}

char *address_host(GInetSocketAddress *addr)
{
	return g_inet_address_to_string(g_inet_socket_address_get_address(addr));
}

GSocketAddress *address_with_port(GInetSocketAddress *addr, int add)
{
	return g_inet_socket_address_new(g_inet_socket_address_get_address(addr),
					 g_inet_socket_address_get_port(addr) + add);
}

guint16 socket_port(GSocket *socket)
{
	GSocketAddress *local = g_socket_get_local_address(socket, NULL);
	guint16 port = 0;

	if (local) {
		port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(local));
		g_object_unref(local);
	}
	return port;
}

/* A bound UDP socket; port 0 lets the kernel choose. */
GSocket *open_socket(GInetAddress *addr, guint16 port, GError **error)
{
	GSocket *socket = g_socket_new(g_inet_address_get_family(addr), G_SOCKET_TYPE_DATAGRAM,
				       G_SOCKET_PROTOCOL_UDP, error);
	GSocketAddress *local;
	gboolean ok;

	if (!socket)
		return NULL;
	local = g_inet_socket_address_new(addr, port);
	ok = g_socket_bind(socket, local, FALSE, error);
	g_object_unref(local);
	if (!ok) {
		char *host = g_inet_address_to_string(addr);

		g_prefix_error(error, "cannot bind UDP %s port %u: ", host, port);
		g_free(host);
		g_clear_object(&socket);
	}
	return socket;
}

FILE *open_log(const char *dir, const char *name, const char *header, GError **error)
{
	char *path = g_build_filename(dir, name, NULL);
	FILE *f = NULL;

	if (g_mkdir_with_parents(dir, 0777) == 0)
		f = fopen(path, "we");
	if (!f)
		g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
			    "cannot write %s: %s; give another directory with --log", path,
			    g_strerror(errno));
	else if (header)
		fprintf(f, "%s\n", header);
	g_free(path);
	return f;
}

/* False, and a message, when what was written did not reach the file. */
gboolean close_log(FILE *f, const char *name)
{
	gboolean bad;

	if (!f)
		return TRUE;
	bad = ferror(f) != 0;
	if (fclose(f) != 0 || bad) {
		g_printerr("paqm-streamer: %s is incomplete: %s\n", name, g_strerror(errno));
		return FALSE;
	}
	return TRUE;
}

static gint64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * G_GINT64_CONSTANT(1000000000) + ts.tv_nsec;
}

gint64 realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

gint64 monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
