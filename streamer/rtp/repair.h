/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sending side of repair: packets that the peer misses are sent again (RFC 4588), some are
 * sent that correct losses (RFC 5109), and pictures pay for both (repairbudget.h).
 */
#ifndef PAQM_STREAMER_REPAIR_H
#define PAQM_STREAMER_REPAIR_H

#include <gst/gst.h>
#include <stdio.h>

#include "streamer/rtp/repairbudget.h"

struct repair;

struct repair_params {
	gboolean rtx;
	guint fec;	  /* packets that correct, per cent of the others; 0: none */
	guint32 ssrc;	  /* of the stream */
	guint32 rtx_ssrc; /* of what is sent again */
};

/**
 * repair_elements() - what stands between payloader and pacer, as gst-launch has it
 *
 * Return: ends with "! " unless it is empty; free with g_free().
 */
char *repair_elements(const struct repair_params *p);

/**
 * repair_new() - watch these elements
 * @pipeline: has them, under their names, and the pacer
 * @pacer: paqmpacer
 */
struct repair *repair_new(GstBin *pipeline, GstElement *pacer, const struct repair_params *p);

/**
 * repair_tick() - main loop, often, and whenever the rate is another
 * @rate: that is allowed, bit/s
 * @log: gets what RATE_HEADER says now and then; NULL: nothing
 * @left: what is left of it for pictures
 *
 * Return: whether @left is worth a new plan.
 */
gboolean repair_tick(struct repair *r, guint64 rate, FILE *log, guint64 *left);

/* For people: what has been done; free with g_free(). */
char *repair_summary(struct repair *r);
void repair_free(struct repair *r);

#endif /* PAQM_STREAMER_REPAIR_H */
