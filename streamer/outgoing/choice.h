/* SPDX-License-Identifier: GPL-2.0 */
/* --controller of the subcommands. */
#ifndef PAQM_CHOICE_H
#define PAQM_CHOICE_H

#include <glib.h>

#include "streamer/control/control.h"

/**
 * parse_controller() - NAME or NAME:OPTION=VALUE,...
 * @text: NULL: the default
 * @option: its options
 *
 * Return: NULL with @error set, which lists what there is.
 */
const struct ctl_kind *parse_controller(const char *text, double option[CTL_OPTIONS],
					GError **error);

#endif /* PAQM_CHOICE_H */
