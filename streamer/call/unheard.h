/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The circuit breaker of a call's picture (RFC 8083 section 4.1): a path may take its packets and
 * nothing of it arrive, while the sound goes on. Then one picture now and then asks whether it
 * does again. Pure functions.
 */
#ifndef PAQM_CALL_UNHEARD_H
#define PAQM_CALL_UNHEARD_H

#include <glib.h>

#define UNHEARD_STILL_S 5 /* between two pictures meanwhile */

struct unheard {
	gboolean stopped;
	guint silent_for; /* s for which the picture was sent and no report came */
};

/**
 * unheard_second() - once a second
 * @sent: pictures have left since the second before
 * @reported: and the peer has reported on them
 *
 * Return: has @stopped changed?
 */
gboolean unheard_second(struct unheard *u, gboolean sent, gboolean reported);

#endif /* PAQM_CALL_UNHEARD_H */
