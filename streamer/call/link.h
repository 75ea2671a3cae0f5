/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The link between the two ends of a call: TLS with a pre-shared key, so that
 * each end proves to know the secret and nobody else can read the SRTP keys.
 * No certificate. Nobody between them sees or changes anything: it is the same from host to host
 * and through a rendezvous.
 */
#ifndef PAQM_CALL_LINK_H
#define PAQM_CALL_LINK_H

#include <gio/gio.h>

#define LINK_SECRET_MIN 16 /* bytes */
#define LINK_HANDSHAKE_S 5 /* time for the caller to prove that it knows the secret */
#define LINK_ANSWER_S 12   /* for who listens: another may be before us, and say nothing */

struct call_link;

/* A whole line without its end; NULL: the link is gone, and why. */
typedef void (*link_line_fn)(const char *line, gsize len, const char *why, gpointer data);

/* Of so many bytes at @least, from a file that others cannot read. */
GBytes *link_secret(const char *path, gsize least, GError **error);
struct call_link *link_listen(GNetworkAddress *where, guint16 port, GBytes *secret, GError **error);
struct call_link *link_connect(GNetworkAddress *where, GBytes *secret, GError **error);
struct call_link *link_meet(GNetworkAddress *where, GBytes *secret, gboolean *first,
			    GError **error);
/* With the port of the link; of the rendezvous, if it goes through one. */
GInetSocketAddress *link_peer(const struct call_link *l);
gboolean link_exchange(struct call_link *l, const char *line, char **answer, GError **error);
/* It is gone because the peer wanted that; nobody else can pretend it. */
gboolean link_ended(const struct call_link *l);
void link_watch(struct call_link *l, link_line_fn fn, gpointer data);
void link_send(struct call_link *l, const char *line);
void link_free(struct call_link *l);

#endif /* PAQM_CALL_LINK_H */
