/* SPDX-License-Identifier: GPL-2.0 */
/* An end of a call at a rendezvous, paqm-meet(8); streamer/meet/words.h has what is said there. */
#ifndef PAQM_CALL_MEET_H
#define PAQM_CALL_MEET_H

#include <gio/gio.h>

#include "streamer/meet/words.h"

#define MEET_ANSWER_S 12 /* for its first word, as for who listens */

/* An error after which it is worth while to come again. */
#define MEET_AGAIN G_IO_ERROR_BUSY

/* What two ends call their meeting when the server's word is @word. */
void meet_name(GBytes *secret, const uint8_t word[MEET_WORD], uint8_t name[MEET_NAME]);

/**
 * meet_wait() - wait for the other end
 * @patient: the server was there before: until it is back
 * @told: people know that this end waits; set once they do
 * @first: this end was there before the other
 *
 * Return: a connection on which all bytes are the other end's, or NULL with @error set.
 */
GSocketConnection *meet_wait(GNetworkAddress *where, GBytes *secret, gboolean patient,
			     gboolean *told, gboolean *first, GError **error);

#endif /* PAQM_CALL_MEET_H */
