// SPDX-License-Identifier: GPL-2.0
/* The circuit breaker of a call's picture; see unheard.h. */
#include "streamer/call/unheard.h"
#include "streamer/rtp/gate.h"

gboolean unheard_second(struct unheard *u, gboolean sent, gboolean reported)
{
	gboolean was = u->stopped;

	if (reported || (!sent && !was)) /* nobody reports on what is not sent */
		u->silent_for = 0;
	else if (!was)
		u->silent_for++;
	u->stopped = was ? !reported : u->silent_for >= BREAKER_S;
	return u->stopped != was;
}
