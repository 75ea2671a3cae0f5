/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of ICE share: the agent and its streams (ice.c), their elements (ice_elements.c).
 */
#ifndef PAQM_CALL_ICE_STATE_H
#define PAQM_CALL_ICE_STATE_H

#include <nice/agent.h>

#include "streamer/call/ice.h"

struct ice_stream {
	struct ice *ice;
	enum call_media media;
	guint id;
	/* by the lock: */
	gboolean gathered, let_in;
	NiceComponentState state;
	NiceCandidate *local, *remote; /* of the path */
	GstElement *src;
	guint64 failed; /* packets that could not be sent */
};

struct ice {
	NiceAgent *agent;
	GMainContext *context;
	GMainLoop *loop;
	GThread *thread;
	GInetSocketAddress *turn;
	GMutex lock;
	GCond changed;
	struct ice_stream stream[CALL_MEDIA];
	ice_moved_fn moved;
	gpointer data;
	guint idle; /* tells of paths */
	guint told; /* bits of streams that have another */
	gboolean closed;
	ice_found_fn found;
	gpointer found_data;
	guint found_idle;
	/* of the main loop: */
	struct offer_ice offered[CALL_MEDIA],
		later[CALL_MEDIA]; /* that the peer has been told of */
	guint heard[CALL_MEDIA];   /* of its candidates that came after the offer */
	gboolean in_vain, late;	   /* waited long enough */
};

/* ice_elements.c, in libnice's thread */
void ice_on_packet(NiceAgent *agent, guint id, guint component, guint len, char *bytes,
		   gpointer data);

#endif /* PAQM_CALL_ICE_STATE_H */
