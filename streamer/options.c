// SPDX-License-Identifier: GPL-2.0
/* Options, addresses and log files of paqm-streamer. */
#include "streamer/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/in6.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

G_DEFINE_QUARK(paqm - streamer - usage, usage)

/* GLib takes --FLAG=no for --FLAG: what does not know of values says so. */
static gboolean values_fit(const GOptionEntry *entries, int argc, char **argv, GError **error)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		for (const GOptionEntry *e = entries; e->long_name; e++) {
			gsize len = strlen(e->long_name);

			if (e->arg != G_OPTION_ARG_NONE || strncmp(argv[i], "--", 2) ||
			    strncmp(argv[i] + 2, e->long_name, len) || argv[i][2 + len] != '=')
				continue;
			g_set_error(error, USAGE_ERROR, 0, "%s: --%s takes no value; see --help",
				    argv[i], e->long_name);
			return FALSE;
		}
	}
	return TRUE;
}

/**
 * parse_options() - the options of a command
 * @operands: what else may follow them, for --help; NULL: nothing
 */
gboolean parse_options(const char *operands, const char *summary, const GOptionEntry *entries,
		       int *argc, char ***argv, GError **error)
{
	GOptionContext *ctx;
	gboolean ok;

	if (!values_fit(entries, *argc, *argv, error))
		return FALSE;
	ctx = g_option_context_new(operands);
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
	gboolean usage = error->domain == USAGE_ERROR || error->domain == G_OPTION_ERROR ||
			 error->domain == G_FILE_ERROR; /* files are named by options */
	int status = usage ? EXIT_USAGE : EXIT_RUN;

	g_printerr("paqm-streamer: %s\n", error->message);
	g_error_free(error);
	return status;
}

gboolean in_range(const char *option, double value, double least, double most, const char *unit,
		  GError **error)
{
	if (value >= least && value <= most)
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0, "%s %.15g: must be %.15g to %.15g%s", option, value,
		    least, most, unit);
	return FALSE;
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

/* --rate-max and --rate-min, NULL if not given: 3 Mbit/s, and @least but not more than that. */
gboolean parse_rates(const char *max, const char *min, guint64 least, guint64 *rate_max,
		     guint64 *rate_min, GError **error)
{
	if (!parse_rate(max ? max : "3mbit", rate_max, error))
		return FALSE;
	*rate_min = MIN(least, *rate_max);
	if (min && !parse_rate(min, rate_min, error))
		return FALSE;
	if (*rate_min > *rate_max)
		g_set_error(error, USAGE_ERROR, 0, "--rate-min must not exceed --rate-max, %s",
			    max ? max : "3mbit");
	return *rate_min <= *rate_max;
}

/*
 * "192.0.2.1:5004", "[2001:db8::1]:5004", "[fe80::1%eth0]:5004", "host.example:5004"; without port
 * if there is a default. What a name stands for is not asked yet.
 */
GNetworkAddress *parse_where(const char *text, guint16 default_port, GError **error)
{
	GSocketConnectable *where = g_network_address_parse(text, default_port, NULL);
	guint16 port = where ? g_network_address_get_port(G_NETWORK_ADDRESS(where)) : 0;

	/* RTCP has the port above */
	if (where && *g_network_address_get_hostname(G_NETWORK_ADDRESS(where)) && port &&
	    (port < G_MAXUINT16 || (port == default_port && !g_str_has_suffix(text, ":65535"))))
		return G_NETWORK_ADDRESS(where);
	g_clear_object(&where);
	g_set_error(
		error, USAGE_ERROR, 0,
		"'%s' is not an address%s: give ADDR%s, such as 192.0.2.1%s, [2001:db8::1]%s or "
		"host.example%s",
		text, default_port ? "" : " with a port from 1 to 65534",
		default_port ? "[:PORT]" : ":PORT", default_port ? "" : ":5004",
		default_port ? "" : ":5004", default_port ? "" : ":5004");
	return NULL;
}

/* Nothing is sent by that. */
static gboolean has_way(GSocketAddress *to)
{
	GSocket *socket = g_socket_new(g_socket_address_get_family(to), G_SOCKET_TYPE_DATAGRAM,
				       G_SOCKET_PROTOCOL_UDP, NULL);
	gboolean ok = socket && g_socket_connect(socket, to, NULL, NULL);

	g_clear_object(&socket);
	return ok;
}

/* The same, and what it stands for: the first address that there is a way to, else the first. */
GInetSocketAddress *parse_address(const char *text, guint16 default_port, GError **error)
{
	GNetworkAddress *where = parse_where(text, default_port, error);
	GSocketAddressEnumerator *all;
	GSocketAddress *found, *first = NULL;
	GError *why = NULL;

	if (!where)
		return NULL;
	all = g_socket_connectable_enumerate(G_SOCKET_CONNECTABLE(where));
	while ((found = g_socket_address_enumerator_next(all, NULL, &why)) && !has_way(found)) {
		if (!first)
			first = g_object_ref(found);
		g_object_unref(found);
	}
	if (!found)
		found = g_steal_pointer(&first);
	g_clear_object(&first);
	g_object_unref(all);
	g_object_unref(where);
	if (!found)
		g_set_error(error, USAGE_ERROR, 0,
			    "cannot resolve '%s' (%s): check the name, or give an address", text,
			    why ? why->message : "it has no address");
	g_clear_error(&why);
	return found ? G_INET_SOCKET_ADDRESS(found) : NULL;
}

char *address_host(GInetSocketAddress *addr)
{
	return g_inet_address_to_string(g_inet_socket_address_get_address(addr));
}

/* The link on which an address is valid; 0: everywhere. */
static guint32 link_of(GInetSocketAddress *addr)
{
	return g_socket_address_get_family(G_SOCKET_ADDRESS(addr)) == G_SOCKET_FAMILY_IPV6
		       ? g_inet_socket_address_get_scope_id(addr)
		       : 0;
}

/* The same host, by the same link. */
GSocketAddress *address_to_port(GInetSocketAddress *addr, guint16 port)
{
	return g_object_new(G_TYPE_INET_SOCKET_ADDRESS, "address",
			    g_inet_socket_address_get_address(addr), "port", port, "scope-id",
			    link_of(addr), NULL);
}

GSocketAddress *address_with_port(GInetSocketAddress *addr, int add)
{
	return address_to_port(addr, (guint16)(g_inet_socket_address_get_port(addr) + add));
}

gboolean address_equal(GInetSocketAddress *a, GInetSocketAddress *b)
{
	return g_inet_socket_address_get_port(a) == g_inet_socket_address_get_port(b) &&
	       g_inet_address_equal(g_inet_socket_address_get_address(a),
				    g_inet_socket_address_get_address(b));
}

gboolean address_same_host(GSocketAddress *a, GSocketAddress *b)
{
	return G_IS_INET_SOCKET_ADDRESS(a) && G_IS_INET_SOCKET_ADDRESS(b) &&
	       g_inet_address_equal(g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(a)),
				    g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(b)));
}

/* Of the same family, or any of this host's addresses: a socket of IPv6 has those of IPv4, too. */
gboolean address_reaches(GInetSocketAddress *from, GInetSocketAddress *to)
{
	GInetAddress *local = g_inet_socket_address_get_address(from);
	GSocketFamily family = g_inet_address_get_family(local);

	return family == g_socket_address_get_family(G_SOCKET_ADDRESS(to)) ||
	       (family == G_SOCKET_FAMILY_IPV6 && g_inet_address_get_is_any(local));
}

/* Any of the addresses of this host; port 0. */
GInetSocketAddress *address_any(GSocketFamily family)
{
	GInetAddress *any = g_inet_address_new_any(family);
	GSocketAddress *addr = g_inet_socket_address_new(any, 0);

	g_object_unref(any);
	return G_INET_SOCKET_ADDRESS(addr);
}

/* Addresses of one link alone are sent to by that link; udpsink has no words for it. */
void socket_use_link(GSocket *socket, GInetSocketAddress *to)
{
	guint32 link = link_of(to);

	if (link)
		g_socket_set_option(socket, IPPROTO_IPV6, IPV6_UNICAST_IF, (gint)htonl(link), NULL);
}

GInetSocketAddress *socket_address(GSocket *socket)
{
	GSocketAddress *local = g_socket_get_local_address(socket, NULL);

	return local ? G_INET_SOCKET_ADDRESS(local) : NULL;
}

guint16 socket_port(GSocket *socket)
{
	GInetSocketAddress *local = socket_address(socket);
	guint16 port = 0;

	if (local) {
		port = g_inet_socket_address_get_port(local);
		g_object_unref(local);
	}
	return port;
}

/* A bound UDP socket; port 0 lets the kernel choose. */
GSocket *open_socket(GInetSocketAddress *addr, guint16 port, GError **error)
{
	GSocket *socket = g_socket_new(g_socket_address_get_family(G_SOCKET_ADDRESS(addr)),
				       G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, error);
	GSocketAddress *local;
	GError *why = NULL;
	char *host;

	if (!socket)
		return NULL;
	local = address_to_port(addr, port);
	if (!g_socket_bind(socket, local, FALSE, &why)) {
		host = address_host(addr);
		g_set_error(error, why->domain, why->code, "cannot bind UDP %s port %u: %s%s", host,
			    port, why->message,
			    g_error_matches(why, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE)
				    ? "; another program receives there: end it, or give another "
				      "port"
				    : "");
		g_error_free(why);
		g_free(host);
		g_clear_object(&socket);
	}
	g_object_unref(local);
	return socket;
}

/**
 * read_small() - what a file has that people write, such as a key
 * @len: its bytes, behind which there is a NUL
 *
 * Unlike g_file_get_contents() it does not read on in what has no end, as /dev/zero.
 */
gboolean read_small(const char *path, char **text, gsize *len, GError **error)
{
	const gsize most = 65536;
	FILE *f = fopen(path, "re");
	char *read = g_malloc(most + 1);

	errno = f ? 0 : errno;
	*len = f ? fread(read, 1, most + 1, f) : 0;
	if (!f || ferror(f))
		g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(errno),
			    "cannot read %s: %s", path, g_strerror(errno));
	else if (*len > most)
		g_set_error(error, USAGE_ERROR, 0, "%s is longer than 64 KiB: it is another file",
			    path);
	else
		*text = g_steal_pointer(&read);
	if (f)
		fclose(f);
	if (!read) {
		(*text)[*len] = 0;
		return TRUE;
	}
	g_free(read);
	return FALSE;
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
	errno = 0; /* of what failed before, this is not the reason any more */
	if (fclose(f) != 0 || bad) {
		g_printerr("paqm-streamer: %s is incomplete: %s\n", name,
			   errno ? g_strerror(errno) : "it could not be written to");
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

gint64 wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

gint64 realtime_ns(void)
{
	static gint64 ahead;
	static gsize known;

	if (g_once_init_enter(&known)) {
		ahead = wall_ns() - monotonic_ns();
		g_once_init_leave(&known, 1);
	}
	return monotonic_ns() + ahead;
}

gint64 monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

gint64 boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}
