// SPDX-License-Identifier: GPL-2.0
/* ICE of a program that was built without libnice: there is none; see ice.h. */
#include "streamer/call/ice.h"

#include "streamer/options.h"

struct ice *ice_new(const struct ice_params *p, struct offer *mine, GError **error)
{
	(void)p;
	(void)mine;
	g_set_error(error, USAGE_ERROR, 0,
		    "this paqm-streamer was built without libnice, so it has no ICE: leave --ice, "
		    "--stun, --turn and --meet out, or build it with libnice-dev installed");
	return NULL;
}

/* Nobody has one: none of these is called. */

gboolean ice_connect(struct ice *ice, const struct offer *theirs, ice_found_fn found, gpointer data,
		     GError **error)
{
	(void)ice;
	(void)theirs;
	(void)found;
	(void)data;
	(void)error;
	return FALSE;
}

void ice_give_up(struct ice *ice)
{
	(void)ice;
}

gboolean ice_more(struct ice *ice, struct offer_ice more[CALL_MEDIA])
{
	(void)ice;
	(void)more;
	return FALSE;
}

void ice_try_more(struct ice *ice, const struct offer_ice more[CALL_MEDIA])
{
	(void)ice;
	(void)more;
}

void ice_watch(struct ice *ice, ice_moved_fn moved, gpointer data)
{
	(void)ice;
	(void)moved;
	(void)data;
}

void ice_path(struct ice *ice, enum call_media media, struct ice_path *path)
{
	(void)ice;
	(void)media;
	*path = (struct ice_path){0};
}

void ice_path_clear(struct ice_path *path)
{
	(void)path;
}

char *ice_path_text(const struct ice_path *path)
{
	(void)path;
	return g_strdup("");
}

GstElement *ice_sink(struct ice *ice, enum call_media media)
{
	(void)ice;
	(void)media;
	return NULL;
}

GstElement *ice_src(struct ice *ice, enum call_media media, GstCaps *caps)
{
	(void)ice;
	(void)media;
	(void)caps;
	return NULL;
}

void ice_let_in(struct ice *ice, enum call_media media)
{
	(void)ice;
	(void)media;
}

void ice_free(struct ice *ice)
{
	(void)ice;
}
