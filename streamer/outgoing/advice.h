/* SPDX-License-Identifier: GPL-2.0 */
/* Advice of paqmd for the flows of a program, in GLib's main loop. */
#ifndef PAQM_STREAMER_ADVICE_H
#define PAQM_STREAMER_ADVICE_H

#include <gio/gio.h>
#include <stdio.h>

#include "libpaqmclient/paqmclient.h"
#include "streamer/control/control.h"

struct advice;

/* Called from the main loop whenever the advice is another. */
typedef void (*advice_fn)(const struct paqm_client_advice *a, gpointer data);

/* What is sent, and between which limits advice is of use (bit/s, IP level). */
struct advice_flow {
	GInetAddress *from; /* NULL or unspecified: any */
	guint16 from_port;
	GInetAddress *to;
	guint16 to_port;
	guint32 ssrc;
	guint64 floor_bps, ceil_bps;
	double gop_s;	 /* for how long a quantizer is held */
	double answer_s; /* how long it takes to follow */
};

/**
 * advice_new() - follow paqmd, now or when it appears
 * @path: its socket, NULL for the usual one, "none": advice is not wanted
 *
 * Return: NULL if it is not wanted; without descriptors or memory, after having said so.
 */
struct advice *advice_new(const char *path);

/**
 * advice_add() - a flow that is sent from now on
 * @a: may be NULL: there will be no advice
 * @flow: the flow
 * @fn: told of the advice
 * @data: for @fn
 *
 * Return: its number, for advice_status().
 */
int advice_add(struct advice *a, const struct advice_flow *flow, advice_fn fn, gpointer data);

/* paqmd is there: advice may come. */
gboolean advice_connected(const struct advice *a);

/* What the sender made of the advice, for paqmctl. */
void advice_status(struct advice *a, int flow, guint64 wire_bps, guint gop, guint qp);
void advice_free(struct advice *a);

/* The same for a rate controller. */
struct ctl_advice advice_control(const struct paqm_client_advice *a);
const char *advice_cause(const struct paqm_client_advice *a);

#define ADVICE_HEADER "t_ns,router,cause,value,rate_bps"
/* A row below it; @log: NULL: nothing is written. */
void advice_log(FILE *log, const struct paqm_client_advice *a);

#endif /* PAQM_STREAMER_ADVICE_H */
