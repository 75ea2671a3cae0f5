// SPDX-License-Identifier: GPL-2.0
/*
 * A camera or microphone that can be opened and gives nothing: one with a switch, or that is muted,
 * or that another program has. Who uses it would learn that from the peer only.
 */
#include "streamer/call/choose.h"
#include "streamer/call/state.h"

/* What may give nothing for long: a file's program, a desktop on which nothing happens. */
static gboolean gives_always(const struct call *c, enum call_device kind)
{
	if (kind == CALL_MICROPHONE)
		return choose_is(c->audio, "mic");
	return choose_is(c->source, "camera") || g_str_has_prefix(c->source, "/dev/video");
}

static void look(struct call *c, enum call_device kind, const char *what)
{
	struct device *d = c->devices[kind];
	guint *quiet_for = &c->quiet_for[kind];
	enum device_gives gives;

	if (!d || !device_elements(d) || !gives_always(c, kind)) {
		*quiet_for = 0;
		return;
	}
	gives = device_gives(d);
	if (gives != DEVICE_SOMETHING) {
		if (++*quiet_for != QUIET_S)
			return;
		g_printerr("paqm-streamer: %s: it has given %s for %d s; %s\n", what,
			   gives == DEVICE_SILENCE ? "nothing but silence" : "nothing", QUIET_S,
			   gives == DEVICE_SILENCE
				   ? "is it muted, by a switch or in this host's mixer, or another "
				     "one than you think (paqm-streamer devices)?"
				   : "does it have a switch, or does another program use it?");
		call_record_event(&c->rec, "quiet", what);
		return;
	}
	if (*quiet_for >= QUIET_S)
		g_printerr("paqm-streamer: %s: it gives %s now\n", what,
			   kind == CALL_MICROPHONE ? "sound" : "pictures");
	*quiet_for = 0;
}

void call_watch_quiet(struct call *c)
{
	look(c, CALL_CAMERA, "camera");
	look(c, CALL_MICROPHONE, "microphone");
}
