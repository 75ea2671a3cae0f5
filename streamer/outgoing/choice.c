// SPDX-License-Identifier: GPL-2.0
/* --controller of the subcommands; see choice.h. */
#include "streamer/outgoing/choice.h"

#include "streamer/options.h"
#include "streamer/rtp/ecn.h"

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

gboolean parse_ecn(const char *text, const struct ctl_kind *kind, enum ecn *ecn, GError **error)
{
	*ecn = ECN_NOT_ECT;
	if (text && !ecn_parse(text, ecn)) {
		g_set_error(error, USAGE_ERROR, 0, "--ecn %s: must be off, ect0 or ect1", text);
		return FALSE;
	}
	if (*ecn == ECN_NOT_ECT || kind->marks)
		return TRUE;
	g_set_error(error, USAGE_ERROR, 0,
		    "--ecn does not go with --controller %s, which does not respond to marks; "
		    "auto, nada and tfrc are among those that do",
		    kind->name);
	return FALSE;
}

gboolean parse_decider(const char *text, struct dec **d, GError **error)
{
	const struct dec_kind *side;
	const struct ctl_kind *kind;
	double option[CTL_OPTIONS];

	kind = parse_controller(text, option, error);
	if (!kind)
		return FALSE;
	side = dec_find(kind->name);
	if (!side) {
		GString *names = g_string_new(NULL);

		for (guint i = 0; dec_kinds[i]; i++)
			g_string_append_printf(names, "%s%s", i ? ", " : "", dec_kinds[i]->name);
		g_set_error(
			error, USAGE_ERROR, 0,
			"--controller %s: it decides at the sender, so name it there; those that "
			"decide at the receiver: %s",
			text, names->str);
		g_string_free(names, TRUE);
		return FALSE;
	}
	*d = dec_new(side, option, monotonic_ns() / 1e9);
	if (!*d)
		g_error("out of memory");
	return TRUE;
}

gboolean parse_carrier(const char *text, enum carrier *carrier, GError **error)
{
	static const char *const names[] = {
		[CARRIER_ICMP] = "icmp", [CARRIER_IN_BAND] = "in-band", [CARRIER_PROBE] = "probe"};

	*carrier = CARRIER_ICMP;
	if (!text)
		return TRUE;
	for (guint k = 0; k < G_N_ELEMENTS(names); k++) {
		if (!strcmp(text, names[k])) {
			*carrier = k;
			return TRUE;
		}
	}
	g_set_error(error, USAGE_ERROR, 0, "--carrier %s: must be icmp, in-band or probe", text);
	return FALSE;
}
