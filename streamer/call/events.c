// SPDX-License-Identifier: GPL-2.0
/* What may happen to a call from anywhere: its end, a device that is lost or back. */
#include <unistd.h>

#include "streamer/call/state.h"

void call_end(struct call *c, const char *why)
{
	if (!c->why)
		c->why = why;
	if (c->main)
		g_main_loop_quit(c->main);
	else if (c->ice)
		ice_give_up(c->ice);
}

void call_on_device(const char *what, enum device_return returns, const char *why, gpointer data)
{
	const char *hint = "";
	struct call *c = data;

	if (!why) {
		g_printerr("paqm-streamer: %s: is back\n", what);
	} else {
		if (returns == DEVICE_RETRIED)
			hint = " until it is back";
		else if (returns == DEVICE_ASKED && isatty(STDIN_FILENO))
			hint = "; key w opens it again";
		g_printerr("paqm-streamer: %s: %s; the call goes on without it%s\n", what, why,
			   hint);
	}
	call_record_event(&c->rec, why ? "lost" : "back", what);
}
