/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A window that fills the screen, and again does not. On X11 the window manager is asked (Extended
 * Window Manager Hints, _NET_WM_STATE); sinks with a property of that name (waylandsink) are told.
 */
#ifndef PAQM_CALL_FULLSCREEN_H
#define PAQM_CALL_FULLSCREEN_H

#include <gst/gst.h>

/* The window that a message tells of, an XID; 0: it tells of none. */
guint64 fullscreen_window(GstMessage *msg);
/**
 * fullscreen_toggle() - the window of the sink in a bin
 * @bin: with one sink
 * @window: as fullscreen_window() has told; 0: not known
 *
 * Return: could anybody be asked?
 */
gboolean fullscreen_toggle(GstElement *bin, guint64 window);

#endif /* PAQM_CALL_FULLSCREEN_H */
