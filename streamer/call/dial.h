/* SPDX-License-Identifier: GPL-2.0 */
/* A TCP connection to who may not be there yet, by a name that may not be known yet. */
#ifndef PAQM_CALL_DIAL_H
#define PAQM_CALL_DIAL_H

#include <gio/gio.h>

#define DIAL_S 30	  /* for so long what may pass is tried again */
#define DIAL_SOON_MS 1500 /* then people are told what it waits for */

/**
 * dial() - connect
 * @patient: for ever, not for DIAL_S: it was there before
 *
 * All addresses that a name has are tried. Return: NULL with @error set.
 */
GSocketConnection *dial(GNetworkAddress *where, gboolean patient, GError **error);

#endif /* PAQM_CALL_DIAL_H */
