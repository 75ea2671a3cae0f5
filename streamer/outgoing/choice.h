/* SPDX-License-Identifier: GPL-2.0 */
/* --controller, --ecn and --carrier of the subcommands. */
#ifndef PAQM_CHOICE_H
#define PAQM_CHOICE_H

#include <glib.h>

#include "streamer/control/control.h"
#include "streamer/decide/decide.h"

/**
 * parse_controller() - NAME or NAME:OPTION=VALUE,...
 * @text: NULL: the default
 * @option: its options
 *
 * Return: NULL with @error set, which lists what there is.
 */
const struct ctl_kind *parse_controller(const char *text, double option[CTL_OPTIONS],
					GError **error);

/**
 * parse_ecn() - off, ect0 or ect1
 * @text: NULL: off
 *
 * Return: FALSE with @error set, also if @kind does not answer marks: who sends as ECN-capable has
 * to.
 */
gboolean parse_ecn(const char *text, const struct ctl_kind *kind, enum ecn *ecn, GError **error);

/* How routers tell rates beside what paqmd hears. */
enum carrier {
	CARRIER_ICMP,	 /* not at all */
	CARRIER_IN_BAND, /* in RTP header extensions */
	CARRIER_PROBE,	 /* in datagrams beside the stream */
};

/* icmp, in-band or probe; @text: NULL: icmp. FALSE with @error set: another word. */
gboolean parse_carrier(const char *text, enum carrier *carrier, GError **error);

/* How marks of such packets are to be answered. */
static inline enum ctl_ecn ecn_for_controller(enum ecn ecn)
{
	return ecn == ECN_ECT0	 ? CTL_ECN_CLASSIC
	       : ecn == ECN_ECT1 ? CTL_ECN_SCALABLE
				 : CTL_ECN_NONE;
}

/**
 * parse_decider() - the same at a receiver: the receiving side of a controller
 * @d: it, at its start
 *
 * Return: FALSE with @error set, also if the controller has no such side.
 */
gboolean parse_decider(const char *text, struct dec **d, GError **error);

#endif /* PAQM_CHOICE_H */
