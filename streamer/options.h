/* SPDX-License-Identifier: GPL-2.0 */
/* What the subcommands of paqm-streamer share: options, addresses, logs. */
#ifndef PAQM_STREAMER_OPTIONS_H
#define PAQM_STREAMER_OPTIONS_H

#include <gio/gio.h>
#include <stdio.h>

#define EXIT_RUN 1
#define EXIT_USAGE 2

#define RTP_CAPS                                                                                   \
	"media=(string)video, clock-rate=(int)90000, "                                             \
	"encoding-name=(string)H264, payload=(int)96"

/* Least time between two regular RTCP packets, ns; feedback goes between them. */
#define RTCP_INTERVAL 100000000ULL

/*
 * The same of a sender without feedback of its own, ns: these packets take the path of the
 * stream, and with a hundred bytes each they are 2 % of a stream of 100 kbit/s.
 */
#define REPORT_INTERVAL 500000000LL

#define MEDIA_BANDWIDTH 1e6 /* bit/s, usual; reports get a twentieth of it */

int cmd_send(int argc, char **argv);
int cmd_recv(int argc, char **argv);
int cmd_call(int argc, char **argv);
int cmd_devices(int argc, char **argv);

gboolean parse_options(const char *operands, const char *summary, const GOptionEntry *entries,
		       int *argc, char ***argv, GError **error);
int report_error(GError *error);
/* FALSE, and said, unless @least <= @value <= @most; @unit has a blank before it, or is empty. */
gboolean in_range(const char *option, double value, double least, double most, const char *unit,
		  GError **error);
gboolean parse_rate(const char *text, guint64 *rate, GError **error);
gboolean parse_rates(const char *max, const char *min, guint64 least, guint64 *rate_max,
		     guint64 *rate_min, GError **error);
GNetworkAddress *parse_where(const char *text, guint16 default_port, GError **error);
GInetSocketAddress *parse_address(const char *text, guint16 default_port, GError **error);
GSocket *open_socket(GInetSocketAddress *addr, guint16 port, GError **error);
void socket_use_link(GSocket *socket, GInetSocketAddress *to);
/* Where it is bound; NULL: nowhere. */
GInetSocketAddress *socket_address(GSocket *socket);
guint16 socket_port(GSocket *socket);
GSocketAddress *address_with_port(GInetSocketAddress *addr, int add);
GSocketAddress *address_to_port(GInetSocketAddress *addr, guint16 port);
/* The same host and port. */
gboolean address_equal(GInetSocketAddress *a, GInetSocketAddress *b);
gboolean address_same_host(GSocketAddress *a, GSocketAddress *b);
gboolean address_reaches(GInetSocketAddress *from, GInetSocketAddress *to);
GInetSocketAddress *address_any(GSocketFamily family);
char *address_host(GInetSocketAddress *addr);
#define SEED_NONE (-1) /* of --seed: not given */

/* Of --duration, s: a timer of GLib counts ms in 32 bit. */
static inline gboolean duration_fits(double duration, GError **error)
{
	return in_range("--duration", duration, 0, 1e6, " seconds", error);
}

/* What is drawn has 32 bits of it: another number would mean a seed that nobody has given. */
static inline gboolean seed_fits(gint64 seed, GError **error)
{
	return seed == SEED_NONE || in_range("--seed", (double)seed, 0, G_MAXUINT32, "", error);
}

gboolean read_small(const char *path, char **text, gsize *len, GError **error);
FILE *open_log(const char *dir, const char *name, const char *header, GError **error);
gboolean close_log(FILE *f, const char *name);
gint64 wall_ns(void);
gint64 realtime_ns(void); /* the same, but for what it is set by meanwhile: for logs */
gint64 monotonic_ns(void);
gint64 boottime_ns(void); /* with suspends */
GQuark usage_quark(void);

#define USAGE_ERROR usage_quark()

#endif /* PAQM_STREAMER_OPTIONS_H */
