// SPDX-License-Identifier: GPL-2.0
/* --controller of the subcommands; see choice.h. */
#include "streamer/outgoing/choice.h"

#include "streamer/options.h"

const struct ctl_kind *parse_controller(const char *text, double option[CTL_OPTIONS],
					GError **error)
{
	char why[256];
	const struct ctl_kind *kind =
		ctl_choose(text ? text : ctl_kinds[0]->name, option, why, sizeof(why));
	GString *names;

	if (kind)
		return kind;
	names = g_string_new(NULL);
	for (guint i = 0; ctl_kinds[i]; i++) {
		const struct ctl_option *o = ctl_kinds[i]->options;

		g_string_append_printf(names, "\n  %-8s %s", ctl_kinds[i]->name,
				       ctl_kinds[i]->summary);
		for (; o && o->name; o++)
			g_string_append_printf(names, "\n    %s=%g  %s", o->name, o->initial,
					       o->what);
	}
	g_set_error(error, USAGE_ERROR, 0,
		    "--controller %s: %s; NAME or NAME:OPTION=VALUE,... of%s", text, why,
		    names->str);
	g_string_free(names, TRUE);
	return NULL;
}
