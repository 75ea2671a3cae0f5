/* SPDX-License-Identifier: GPL-2.0 */
/* Cameras, microphones and loudspeakers of this host, by name: what there is, and which is meant.
 */
#ifndef PAQM_CALL_CHOOSE_H
#define PAQM_CALL_CHOOSE_H

#include <gst/gst.h>

enum choose_kind { CHOOSE_CAMERA, CHOOSE_MICROPHONE, CHOOSE_SPEAKER, CHOOSE_KINDS };

/* What follows "WORD:" in an option; NULL: it is not of that form. */
const char *choose_name(const char *option, const char *word);
/* The word alone, or with a name: one of these devices. */
gboolean choose_is(const char *option, const char *word);

/**
 * choose_elements() - the device of that name, as gst-launch has it
 * @name: as `paqm-streamer devices` shows it, a part of it that no other has, or its number
 * Return: free with g_free(); NULL: there is none, and @error says what there is.
 */
char *choose_elements(enum choose_kind kind, const char *name, GError **error);

#endif /* PAQM_CALL_CHOOSE_H */
