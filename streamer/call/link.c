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
#include <unistd.h>

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
	GInetAddress *peer;
	GByteArray *in;
	link_line_fn fn;
	gpointer data;
	guint watch;
};

/**
 * link_secret() - the shared secret from a file
 *
 * The file must be the user's own affair: not readable by others. A final line
 * end does not belong to the secret.
 */
GBytes *link_secret(const char *path, GError **error)
{
	struct stat st;
	char *text = NULL;
	gsize len = 0;

	if (!g_file_get_contents(path, &text, &len, error))
		return NULL;
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (stat(path, &st) == 0 && st.st_mode & 077)
		g_set_error(
			error, USAGE_ERROR, 0,
			"%s may be read by others: chmod 600 it, and give it to the peer over a "
			"safe channel only",
			path);
	else if (len < LINK_SECRET_MIN)
		g_set_error(error, USAGE_ERROR, 0,
			    "%s has %" G_GSIZE_FORMAT " bytes, a secret needs %d: make one with "
			    "head -c 24 /dev/urandom | base64 >FILE",
			    path, len, LINK_SECRET_MIN);
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
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static gboolean tls(struct call_link *l, GError **error)
{
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
		gnutls_handshake_set_timeout(l->session, LINK_HANDSHAKE_S * 1000);
		do
			err = gnutls_handshake(l->session);
		while (err < 0 && !gnutls_error_is_fatal(err));
	}
	if (err) {
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
			    "no TLS link: %s; do both ends have the same secret?",
			    gnutls_strerror(err));
		return FALSE;
	}
	return TRUE;
}

static GInetAddress *address_of(const struct sockaddr_storage *ss, socklen_t len)
{
	GSocketAddress *sa = g_socket_address_new_from_native((gpointer)ss, len);
	GInetAddress *addr =
		g_object_ref(g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(sa)));

	g_object_unref(sa);
	return addr;
}

static int native(GInetSocketAddress *addr, struct sockaddr_storage *ss, socklen_t *len)
{
	*len = (socklen_t)g_socket_address_get_native_size(G_SOCKET_ADDRESS(addr));
	g_socket_address_to_native(G_SOCKET_ADDRESS(addr), ss, sizeof(*ss), NULL);
	return socket(ss->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void failed(GError **error, const char *what, GInetSocketAddress *addr)
{
	int saved = errno;
	char *host = address_host(addr);

	g_set_error(error, G_IO_ERROR, g_io_error_from_errno(saved), "cannot %s %s port %u: %s",
		    what, host, g_inet_socket_address_get_port(addr), g_strerror(saved));
	g_free(host);
}

/**
 * link_listen() - wait for a peer who knows the secret
 *
 * Callers that do not are told off, reported and passed over.
 */
struct call_link *link_listen(GInetSocketAddress *addr, GBytes *secret, GError **error)
{
	struct call_link *l = link_new(secret, TRUE);
	struct sockaddr_storage ss;
	socklen_t len;
	int one = 1, fd = native(addr, &ss, &len);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&ss, len) < 0 || listen(fd, 4) < 0) {
		failed(error, "listen on", addr);
		if (fd >= 0)
			close(fd);
		link_free(l);
		return NULL;
	}
	while (!l->session) {
		GError *why = NULL;
		char *host;

		len = sizeof(ss);
		l->fd = accept4(fd, (struct sockaddr *)&ss, &len, SOCK_CLOEXEC);
		if (l->fd < 0) {
			if (errno == ECONNABORTED)
				continue;
			failed(error, "take a call on", addr);
			close(fd);
			link_free(l);
			return NULL;
		}
		g_clear_object(&l->peer);
		l->peer = address_of(&ss, len);
		if (tls(l, &why))
			break;
		host = g_inet_address_to_string(l->peer);
		g_printerr("paqm-streamer: a caller from %s was refused: %s\n", host, why->message);
		g_free(host);
		g_error_free(why);
		end_session(l);
	}
	close(fd);
	return l;
}

/**
 * link_connect() - call a peer who listens
 *
 * A peer who does not listen yet is tried again, for 30 s.
 */
struct call_link *link_connect(GInetSocketAddress *addr, GBytes *secret, GError **error)
{
	struct call_link *l = link_new(secret, FALSE);
	gint64 give_up = g_get_monotonic_time() + LINK_CONNECT_S * G_USEC_PER_SEC;
	struct sockaddr_storage ss;
	socklen_t len;

	for (;;) {
		l->fd = native(addr, &ss, &len);
		if (l->fd >= 0 && connect(l->fd, (struct sockaddr *)&ss, len) == 0)
			break;
		if (l->fd < 0 || (errno != ECONNREFUSED && errno != EINTR) ||
		    g_get_monotonic_time() > give_up) {
			failed(error, "call", addr);
			link_free(l);
			return NULL;
		}
		close(l->fd);
		l->fd = -1;
		g_usleep(RETRY_MS * 1000);
	}
	l->peer = g_object_ref(g_inet_socket_address_get_address(addr));
	if (tls(l, error))
		return l;
	link_free(l);
	return NULL;
}

GInetAddress *link_peer(const struct call_link *l)
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
	*why = n ? gnutls_strerror((int)n) : "the peer hung up";
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

/* From now on lines are handed over in the main loop. */
void link_watch(struct call_link *l, link_line_fn fn, gpointer data)
{
	g_unix_set_fd_nonblocking(l->fd, TRUE, NULL);
	l->fn = fn;
	l->data = data;
	l->watch = g_unix_fd_add(l->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, readable, l);
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
	if (l->session)
		gnutls_bye(l->session, GNUTLS_SHUT_WR);
	end_session(l);
	gnutls_memset(l->key.data, 0, l->key.size);
	gnutls_free(l->key.data);
	g_clear_object(&l->peer);
	g_byte_array_unref(l->in);
	g_free(l);
}
