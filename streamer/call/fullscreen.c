// SPDX-License-Identifier: GPL-2.0
/* A window that fills the screen; see fullscreen.h. */
#include "streamer/call/fullscreen.h"

#include <X11/Xlib.h>

#define TOGGLE 2      /* _NET_WM_STATE_TOGGLE */
#define APPLICATION 1 /* the request is not a pager's */

guint64 fullscreen_window(GstMessage *msg)
{
	guint64 window = 0;

	/* gst_video_overlay_got_window_handle() */
	if (gst_message_has_name(msg, "have-window-handle"))
		gst_structure_get_uint64(gst_message_get_structure(msg), "window-handle", &window);
	return window;
}

static gint knows_not(const GValue *item, gconstpointer unused)
{
	GObject *element = g_value_get_object(item);

	(void)unused;
	return !g_object_class_find_property(G_OBJECT_GET_CLASS(element), "fullscreen");
}

/* What has a property for it; unref it. */
static GstElement *who_knows(GstElement *bin)
{
	GstIterator *it = gst_bin_iterate_recurse(GST_BIN(bin));
	GValue item = G_VALUE_INIT;
	GstElement *found = NULL;

	if (gst_iterator_find_custom(it, (GCompareFunc)knows_not, &item, NULL))
		found = g_value_dup_object(&item);
	g_value_unset(&item);
	gst_iterator_free(it);
	return found;
}

/* The window manager does it, if there is one that can. */
static gboolean ask_manager(guint64 window)
{
	Display *display = XOpenDisplay(NULL);
	XEvent event = {0};

	if (!display)
		return FALSE;
	event.xclient.type = ClientMessage;
	event.xclient.window = (Window)window;
	event.xclient.message_type = XInternAtom(display, "_NET_WM_STATE", False);
	event.xclient.format = 32;
	event.xclient.data.l[0] = TOGGLE;
	event.xclient.data.l[1] = (long)XInternAtom(display, "_NET_WM_STATE_FULLSCREEN", False);
	event.xclient.data.l[3] = APPLICATION;
	XSendEvent(display, DefaultRootWindow(display), False,
		   SubstructureNotifyMask | SubstructureRedirectMask, &event);
	XCloseDisplay(display);
	return TRUE;
}

gboolean fullscreen_toggle(GstElement *bin, guint64 window)
{
	GstElement *sink = who_knows(bin);
	gboolean now;

	if (!sink)
		return window && ask_manager(window);
	g_object_get(sink, "fullscreen", &now, NULL);
	g_object_set(sink, "fullscreen", !now, NULL);
	gst_object_unref(sink);
	return TRUE;
}
