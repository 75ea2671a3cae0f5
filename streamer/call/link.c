// SPDX-License-Identifier: GPL-2.0
/*
 * GnuTLS with external keys: TLS 1.3 or 1.2, always with an ephemeral
 * Diffie-Hellman exchange, so a secret that leaks later opens no old call.
 * What comes before the secret is proven costs one process one connection at a
 * time, for five seconds at most.
 */
#include "streamer/call/link.h"

#include <errno.h>
#include <glib-unix.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "streamer/call/dial.h"
#include "streamer/call/meet.h"
#include "streamer/call/offer.h"
#include "streamer/options.h"

#define USER "paqm-call"
#define PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-PSK:+DHE-PSK"
#define RETRY_MS 500

struct call_link {
	int fd;
	gboolean server;
	gnutls_datum_t key;
	gnutls_psk_server_credentials_t server_cred;
	gnutls_psk_client_credentials_t client_cred;
	gnutls_session_t session;
	GSocketConnection *connection;
	GInetSocketAddress *peer;
	GByteArray *in;
	link_line_fn fn;
	gpointer data;
	guint watch, begin;
	gboolean ended; /* the peer has said so, by TLS */
};

/**
 * link_secret() - the shared secret from a file
 *
 * The file must be the user's own affair: not readable by others. A final line
 * end does not belong to the secret.
 */
GBytes *link_secret(const char *path, gsize least, GError **error)
{
	struct stat st;
	char *text = NULL;
	gsize len = 0;

	if (!read_small(path, &text, &len, error))
		return NULL;
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (stat(path, &st) == 0 && st.st_mode & 077)
		g_set_error(error, USAGE_ERROR, 0,
			    "%s may be read by others: chmod 600 it, and share it only over a safe "
			    "channel",
			    path);
	else if (!len)
		g_set_error(error, USAGE_ERROR, 0, "%s is empty: write the secret into it", path);
	else if (len < least)
		g_set_error(error, USAGE_ERROR, 0,
			    "%s has %" G_GSIZE_FORMAT " bytes, a secret needs %" G_GSIZE_FORMAT
			    ": make one with "
			    "head -c 24 /dev/urandom | base64 >FILE",
			    path, len, least);
	else
		return g_bytes_new_take(text, len);
	g_free(text);
	return NULL;
}

static struct call_link *link_new(GBytes *secret, gboolean server)
{
	struct call_link *l = g_new0(struct call_link, 1);
	gsize len;
	gconstpointer data = g_bytes_get_data(secret, &len);

	l->fd = -1;
	l->server = server;
	l->in = g_byte_array_new();
	l->key.size = 32;
	l->key.data = gnutls_malloc(l->key.size);
	gnutls_hash_fast(GNUTLS_DIG_SHA256, data, len, l->key.data);
	return l;
}

static int give_key(gnutls_session_t session, const char *user, gnutls_datum_t *key)
{
	struct call_link *l = gnutls_session_get_ptr(session);

	if (strcmp(user, USER))
		return -1;
	key->size = l->key.size;
	key->data = gnutls_malloc(key->size);
	if (!key->data)
		return -1;
	memcpy(key->data, l->key.data, key->size);
	return 0;
}

static void end_session(struct call_link *l)
{
	if (l->session)
		gnutls_deinit(l->session);
	if (l->server_cred)
		gnutls_psk_free_server_credentials(l->server_cred);
	if (l->client_cred)
		gnutls_psk_free_client_credentials(l->client_cred);
	l->session = NULL;
	l->server_cred = NULL;
	l->client_cred = NULL;
	g_clear_object(&l->connection);
	l->fd = -1;
}

static gboolean tls(struct call_link *l, GError **error)
{
	int limit = l->server ? LINK_HANDSHAKE_S : LINK_ANSWER_S;
	int flags = (l->server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NO_SIGNAL;
	int err;

	err = gnutls_init(&l->session, (unsigned int)flags);
	if (!err)
		err = gnutls_priority_set_direct(l->session, PRIORITY, NULL);
	if (!err && l->server) {
		err = gnutls_psk_allocate_server_credentials(&l->server_cred);
		if (!err) {
			gnutls_psk_set_server_credentials_function(l->server_cred, give_key);
			err = gnutls_psk_set_server_known_dh_params(l->server_cred,
								    GNUTLS_SEC_PARAM_MEDIUM);
		}
		if (!err)
			err = gnutls_credentials_set(l->session, GNUTLS_CRD_PSK, l->server_cred);
	} else if (!err) {
		err = gnutls_psk_allocate_client_credentials(&l->client_cred);
		if (!err)
			err = gnutls_psk_set_client_credentials(l->client_cred, USER, &l->key,
								GNUTLS_PSK_KEY_RAW);
		if (!err)
			err = gnutls_credentials_set(l->session, GNUTLS_CRD_PSK, l->client_cred);
	}
	if (!err) {
		gnutls_session_set_ptr(l->session, l);
		gnutls_transport_set_int(l->session, l->fd);
		gnutls_handshake_set_timeout(l->session, (unsigned int)limit * 1000);
		do
			err = gnutls_handshake(l->session);
		while (err < 0 && !gnutls_error_is_fatal(err));
	}
	if (err) {
		if (err == GNUTLS_E_TIMEDOUT)
			g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
				    "no TLS link: the other end says nothing for %d s; is it "
				    "paqm-streamer call?",
				    limit);
		else
			g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
				    "no TLS link: %s; do both ends have the same secret?",
				    gnutls_strerror(err));
		return FALSE;
	}
	return TRUE;
}

/* GnuTLS reads and writes by itself, and waits within. */
static void use_connection(struct call_link *l, GSocketConnection *connection)
{
	GSocket *socket = g_socket_connection_get_socket(connection);

	l->connection = connection;
	l->fd = g_socket_get_fd(socket);
	g_socket_set_timeout(socket, 0);
	g_unix_set_fd_nonblocking(l->fd, FALSE, NULL);
	g_clear_object(&l->peer);
	l->peer = G_INET_SOCKET_ADDRESS(g_socket_connection_get_remote_address(connection, NULL));
}

static gboolean listen_on(GSocketListener *listener, GNetworkAddress *where, guint16 port,
			  GError **error)
{
	GSocketAddressEnumerator *all;
	GSocketAddress *addr;
	gboolean ok = FALSE;
	GError *why = NULL;

	if (!where) {
		ok = g_socket_listener_add_inet_port(listener, port, NULL, &why);
	} else {
		/* all that a name stands for */
		all = g_socket_connectable_enumerate(G_SOCKET_CONNECTABLE(where));
		while (!why && (addr = g_socket_address_enumerator_next(all, NULL, &why))) {
			ok = g_socket_listener_add_address(listener, addr, G_SOCKET_TYPE_STREAM,
							   G_SOCKET_PROTOCOL_TCP, NULL, NULL, &why);
			g_object_unref(addr);
		}
		g_object_unref(all);
	}
	if (ok && !why)
		return TRUE;
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot listen on %s port %u: %s; %s",
		    where ? g_network_address_get_hostname(where) : "this host,", port,
		    why ? why->message : "it has no address",
		    g_error_matches(why, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE)
			    ? "another program does: end it, or use another port at both ends "
			      "(--listen ADDR:PORT)"
			    : "give --listen an address of this host, or none");
	g_clear_error(&why);
	return FALSE;
}

/**
 * link_listen() - wait for a peer who knows the secret
 * @where: to listen; NULL: on all addresses of this host
 * @port: if so
 *
 * Callers that do not are told off, reported and passed over.
 */
struct call_link *link_listen(GNetworkAddress *where, guint16 port, GBytes *secret, GError **error)
{
	GSocketListener *listener = g_socket_listener_new();
	struct call_link *l = link_new(secret, TRUE);
	gboolean ok = listen_on(listener, where, port, error);

	while (ok && !l->session) {
		GSocketConnection *connection;
		GError *why = NULL;
		char *host;

		connection = g_socket_listener_accept(listener, NULL, NULL, &why);
		if (!connection) {
			/* that one has gone again */
			ok = g_error_matches(why, G_IO_ERROR, G_IO_ERROR_FAILED);
			if (!ok)
				g_propagate_prefixed_error(error, g_steal_pointer(&why),
							   "cannot take a call: ");
			g_clear_error(&why);
			continue;
		}
		use_connection(l, connection);
		if (l->peer && tls(l, &why))
			break;
		host = l->peer ? address_host(l->peer) : g_strdup("nowhere");
		g_printerr("paqm-streamer: a caller from %s was refused: %s\n", host,
			   why ? why->message : "it has gone again");
		g_free(host);
		g_clear_error(&why);
		end_session(l);
	}
	g_socket_listener_close(listener);
	g_object_unref(listener);
	if (ok)
		return l;
	link_free(l);
	return NULL;
}

static const char *what_to_do(const GError *why, gboolean connected)
{
	if (connected)
		return "";
	if (why && why->domain == G_RESOLVER_ERROR)
		return "; check the name and this host's resolver, or give an address";
	return "; is paqm-streamer call --listen running there, and the port open?";
}

/**
 * link_connect() - call a peer who listens
 *
 * All addresses that a name has are tried; for 30 s again what may pass.
 */
struct call_link *link_connect(GNetworkAddress *where, GBytes *secret, GError **error)
{
	struct call_link *l = link_new(secret, FALSE);
	GError *why = NULL;
	GSocketConnection *connection = dial(where, FALSE, &why);

	if (connection) {
		use_connection(l, connection);
		if (l->peer && tls(l, &why))
			return l;
	}
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot call %s port %u: %s%s",
		    g_network_address_get_hostname(where), g_network_address_get_port(where),
		    why ? why->message : "the peer has gone again",
		    what_to_do(why, connection != NULL));
	g_clear_error(&why);
	link_free(l);
	return NULL;
}

/* At a rendezvous something went wrong. FALSE: for good. */
static gboolean come_again(const GError *why, gboolean joined, gboolean first, gint64 *give_up)
{
	gint64 now = g_get_monotonic_time();

	if (!joined && !g_error_matches(why, G_IO_ERROR, MEET_AGAIN))
		return FALSE;
	/* who waits is like who listens: others may try what they like */
	if (joined && first)
		*give_up = 0;
	else if (!*give_up)
		*give_up = now + DIAL_S * G_USEC_PER_SEC;
	if (*give_up && now > *give_up)
		return FALSE;
	g_printerr("paqm-streamer: %s%s; trying again\n",
		   joined ? "an end at the rendezvous was refused: " : "",
		   why ? why->message : "it has gone again");
	g_usleep(RETRY_MS * 1000);
	return TRUE;
}

/**
 * link_meet() - wait at a rendezvous for a peer who knows the secret
 * @first: this end was there before the peer
 *
 * Who was there first is the server of TLS, and waits as link_listen() does, for the rendezvous,
 * too, if that is gone for a while. What the other meets with is tried again for 30 s.
 */
struct call_link *link_meet(GNetworkAddress *where, GBytes *secret, gboolean *first, GError **error)
{
	struct call_link *l = link_new(secret, FALSE);
	gboolean waits = FALSE;
	gint64 give_up = 0;

	for (;;) {
		gint64 begin = g_get_monotonic_time();
		GError *why = NULL;
		GSocketConnection *connection =
			meet_wait(where, secret, waits, &waits, first, &why);

		/* it has waited in peace: this is another trouble */
		if (g_get_monotonic_time() - begin > DIAL_S * G_USEC_PER_SEC)
			give_up = 0;

		if (connection) {
			use_connection(l, connection);
			l->server = *first;
			if (l->peer && tls(l, &why))
				return l;
			end_session(l);
		}
		if (come_again(why, connection != NULL, *first, &give_up)) {
			g_clear_error(&why);
			continue;
		}
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot meet at %s port %u: %s%s",
			    g_network_address_get_hostname(where),
			    g_network_address_get_port(where),
			    why ? why->message : "the peer has gone again",
			    why && why->domain == G_RESOLVER_ERROR
				    ? "; check the name and this host's resolver, or give an "
				      "address"
			    : g_error_matches(why, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED)
				    ? "; is paqm-meet running there, and the port open?"
				    : "");
		g_clear_error(&why);
		link_free(l);
		return NULL;
	}
}

GInetSocketAddress *link_peer(const struct call_link *l)
{
	return l->peer;
}

/* A whole line out of what has come; NULL: there is none yet. */
static char *take_line(struct call_link *l, gsize *len)
{
	guint8 *end = l->in->len ? memchr(l->in->data, '\n', l->in->len) : NULL;
	char *line;

	if (!end)
		return NULL;
	*len = (gsize)(end - l->in->data);
	line = g_strndup((const char *)l->in->data, *len);
	g_byte_array_remove_range(l->in, 0, (guint)*len + 1);
	return line;
}

/* 0: it came to nothing now; below: the link is gone, *why says so. */
static int receive(struct call_link *l, const char **why)
{
	guint8 block[1024];
	ssize_t n = gnutls_record_recv(l->session, block, sizeof(block));

	if (n > 0) {
		g_byte_array_append(l->in, block, (guint)n);
		if (l->in->len <= OFFER_LINE || memchr(l->in->data, '\n', l->in->len))
			return 1;
		*why = "the peer sends a line without end";
		return -1;
	}
	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
		return 0;
	if (n < 0 && !gnutls_error_is_fatal((int)n))
		return 0;
	l->ended = n == 0;
	/* GnuTLS' words for a program that was killed, or a host that was cut off, help nobody */
	*why = !n ? "the peer hung up"
	       : n == GNUTLS_E_PREMATURE_TERMINATION || n == GNUTLS_E_PULL_ERROR
		       ? "the connection broke off without a hang-up"
		       : gnutls_strerror((int)n);
	return -1;
}

static int write_all(struct call_link *l, const char *line)
{
	gsize left = strlen(line);

	while (left) {
		ssize_t n = gnutls_record_send(l->session, line, left);

		if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED) {
			struct pollfd p = {.fd = l->fd, .events = POLLOUT};

			/* notes are short: a link that takes none for a second is dead */
			if (poll(&p, 1, 1000) == 1)
				continue;
		}
		if (n <= 0)
			return -1;
		line += n;
		left -= (gsize)n;
	}
	return 0;
}

/**
 * link_exchange() - say the first line and hear the peer's
 * @answer: to be freed; without line end
 */
gboolean link_exchange(struct call_link *l, const char *line, char **answer, GError **error)
{
	struct timeval limit = {.tv_sec = LINK_HANDSHAKE_S};
	const char *why = "the peer says nothing";
	gsize len;
	int got = 1;

	setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (write_all(l, line) == 0)
		while (!(*answer = take_line(l, &len)) && (got = receive(l, &why)) > 0)
			;
	if (*answer)
		return TRUE;
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED, "no answer from the peer: %s",
		    why);
	return FALSE;
}

static gboolean readable(gint fd, GIOCondition condition, gpointer data)
{
	struct call_link *l = data;
	const char *why = NULL;
	int got;

	(void)fd;
	(void)condition;
	do {
		char *line;
		gsize len;

		got = receive(l, &why);
		while ((line = take_line(l, &len))) {
			l->fn(line, len, NULL, l->data);
			g_free(line);
		}
	} while (got > 0 && gnutls_record_check_pending(l->session));
	if (got >= 0)
		return G_SOURCE_CONTINUE;
	l->watch = 0;
	l->fn(NULL, 0, why, l->data);
	return G_SOURCE_REMOVE;
}

gboolean link_ended(const struct call_link *l)
{
	return l->ended;
}

/* What came with the first line: the socket will not tell of it again. */
static gboolean on_begin(gpointer data)
{
	struct call_link *l = data;
	guint watch = l->watch;

	l->begin = 0;
	if (readable(l->fd, G_IO_IN, l) == G_SOURCE_REMOVE)
		g_source_remove(watch);
	return G_SOURCE_REMOVE;
}

/* From now on lines are handed over in the main loop. */
void link_watch(struct call_link *l, link_line_fn fn, gpointer data)
{
	g_unix_set_fd_nonblocking(l->fd, TRUE, NULL);
	l->fn = fn;
	l->data = data;
	l->watch = g_unix_fd_add(l->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, readable, l);
	l->begin = g_idle_add(on_begin, l);
}

/* Takes @line over. A link that is gone is reported by the watch. */
void link_send(struct call_link *l, const char *line)
{
	if (write_all(l, line) < 0)
		g_debug("a note to the peer was lost");
}

void link_free(struct call_link *l)
{
	if (!l)
		return;
	if (l->watch)
		g_source_remove(l->watch);
	if (l->begin)
		g_source_remove(l->begin);
	if (l->session)
		gnutls_bye(l->session, GNUTLS_SHUT_WR);
	end_session(l);
	gnutls_memset(l->key.data, 0, l->key.size);
	gnutls_free(l->key.data);
	g_clear_object(&l->peer);
	g_byte_array_unref(l->in);
	g_free(l);
}
