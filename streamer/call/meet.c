// SPDX-License-Identifier: GPL-2.0
/* An end at a rendezvous; see meet.h. Nothing that the server says is trusted: it decides only who
 * of the two begins, and the TLS that follows is with the other end.
 */
#include "streamer/call/meet.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "streamer/call/dial.h"

/* For this use of the secret and no other; the key of TLS is not made of it. */
#define LABEL "paqm-call meeting, version 1"
#define WAITING_S 1 /* the other one is not there if it takes longer */
/* NATs forget a silent connection after a few minutes, some sooner. */
#define KEEP_IDLE_S 25
#define KEEP_EVERY_S 10
#define KEEP_TIMES 4

/* HMAC-SHA256 twice, extract and expand as in RFC 5869: of one block, keyed with secret and word.
 */
void meet_name(GBytes *secret, const uint8_t word[MEET_WORD], uint8_t name[MEET_NAME])
{
	gsize len;
	gconstpointer data = g_bytes_get_data(secret, &len);
	guint8 key[32], text[sizeof(LABEL) + MEET_WORD];

	gnutls_hmac_fast(GNUTLS_MAC_SHA256, LABEL, strlen(LABEL), data, len, key);
	memcpy(text, word, MEET_WORD);
	memcpy(text + MEET_WORD, LABEL, strlen(LABEL));
	text[MEET_WORD + strlen(LABEL)] = 1;
	gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, sizeof(key), text, MEET_WORD + strlen(LABEL) + 1,
			 name);
	gnutls_memset(key, 0, sizeof(key));
}

static gboolean is_not_meet(GError **error)
{
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
		    "the server there is not a rendezvous for calls (paqm-meet)");
	return FALSE;
}

/* A line, byte by byte: what follows it may be the other end's. */
static gboolean read_line(GSocket *socket, struct meet_line *line, GError **error)
{
	char text[MEET_LINE];
	gsize len = 0;

	for (;;) {
		gssize n = g_socket_receive(socket, text + len, 1, NULL, error);

		if (n < 0)
			return FALSE;
		if (n == 0) {
			g_set_error(error, G_IO_ERROR, MEET_AGAIN, "the rendezvous has hung up");
			return FALSE;
		}
		if (text[len] == '\n')
			return meet_read(line, text, len) || is_not_meet(error);
		if (++len == sizeof(text))
			return is_not_meet(error);
	}
}

static gboolean answer(GSocket *socket, GBytes *secret, const struct meet_line *greeting,
		       GError **error)
{
	struct meet_line hello = {.kind = MEET_HELLO};
	char text[MEET_LINE];
	gsize len;

	memcpy(hello.word, greeting->word, MEET_WORD);
	meet_name(secret, hello.word, hello.name);
	len = meet_write(&hello, text);
	return g_socket_send(socket, text, len, NULL, error) == (gssize)len;
}

static void refused(const char *reason, GError **error)
{
	static const struct {
		const char *reason, *text;
	} known[] = {
		{"full", "the rendezvous is full"},
		{"address", "too many from this address are at the rendezvous"},
		{"third", "two ends with this secret are in a call already"},
		{"silent", "the rendezvous has not heard this end in time"},
	};
	const char *text = "the rendezvous does not understand this end: is it older?";

	for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
		if (!strcmp(reason, known[i].reason))
			text = known[i].text;
	g_set_error(error, G_IO_ERROR, MEET_AGAIN, "%s", text);
}

static void say_waiting(GNetworkAddress *where, gboolean *told)
{
	if (!*told)
		printf("waiting for the other end at %s port %u; it must have the same secret\n",
		       g_network_address_get_hostname(where), g_network_address_get_port(where));
	fflush(stdout);
	*told = TRUE;
}

/* TRUE: the other end is there. */
static gboolean meet(GSocket *socket, GNetworkAddress *where, GBytes *secret, gboolean *told,
		     gboolean *first, GError **error)
{
	gboolean greeted = FALSE;
	struct meet_line line;
	GError *why = NULL;

	g_socket_set_timeout(socket, MEET_ANSWER_S);
	for (;;) {
		if (greeted && !g_socket_condition_timed_wait(
				       socket, G_IO_IN, WAITING_S * G_USEC_PER_SEC, NULL, NULL)) {
			say_waiting(where, told);
			/* for hours perhaps; then a line comes whole */
			g_socket_set_timeout(socket, 0);
			g_socket_condition_wait(socket, G_IO_IN, NULL, NULL);
			g_socket_set_timeout(socket, MEET_ANSWER_S);
		}
		if (!read_line(socket, &line, &why))
			break;
		if (line.kind == MEET_NO) {
			refused(line.reason, error);
			return FALSE;
		}
		if (greeted && (line.kind == MEET_FIRST || line.kind == MEET_SECOND)) {
			*first = line.kind == MEET_FIRST;
			return TRUE;
		}
		if (line.kind != MEET_GREETING)
			return is_not_meet(error);
		if (!answer(socket, secret, &line, &why))
			break;
		greeted = TRUE;
	}
	if (!greeted && g_error_matches(why, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
		is_not_meet(error);
	else if (g_error_matches(why, G_IO_ERROR, G_IO_ERROR_INVALID_DATA))
		g_propagate_error(error, g_steal_pointer(&why));
	else
		g_set_error(error, G_IO_ERROR, MEET_AGAIN, "the rendezvous is lost: %s",
			    why->message);
	g_clear_error(&why);
	return FALSE;
}

GSocketConnection *meet_wait(GNetworkAddress *where, GBytes *secret, gboolean patient,
			     gboolean *told, gboolean *first, GError **error)
{
	GSocketConnection *connection = dial(where, patient, error);
	GSocket *socket;

	if (!connection)
		return NULL;
	socket = g_socket_connection_get_socket(connection);
	g_socket_set_blocking(socket, TRUE);
	g_socket_set_keepalive(socket, TRUE);
	g_socket_set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
	g_socket_set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S, NULL);
	g_socket_set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S, NULL);
	g_socket_set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, KEEP_TIMES, NULL);
	if (meet(socket, where, secret, told, first, error))
		return connection;
	g_object_unref(connection);
	return NULL;
}
