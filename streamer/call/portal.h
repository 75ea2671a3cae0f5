/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The screen of a Wayland session, where programs see only their own windows: the desktop's portal
 * asks its user what to show, and gives it by PipeWire (xdg-desktop-portal,
 * org.freedesktop.portal.ScreenCast).
 */
#ifndef PAQM_CALL_PORTAL_H
#define PAQM_CALL_PORTAL_H

#include <glib.h>

struct portal; /* as long as it is there the screen is shown */

/**
 * portal_open() - ask the user for a screen or a window; waits for the answer
 *
 * Return: NULL: there is none, and @error says why.
 */
struct portal *portal_open(GError **error);
/* What gives its pictures, as gst-launch has it; free with g_free(). */
char *portal_elements(const struct portal *p);
void portal_free(struct portal *p);

#endif /* PAQM_CALL_PORTAL_H */
