/* SPDX-License-Identifier: GPL-2.0 */
/* Client of paqmd: registers one flow, hands over the newest allowance. */
#ifndef PAQM_STREAMER_IPC_CLIENT_H
#define PAQM_STREAMER_IPC_CLIENT_H

#include <glib.h>

#include "feedback-daemon/paqm_ipc.h"

struct ipc_client;

/* Called from the main loop; rate is NULL when the daemon has gone. */
typedef void (*ipc_rate_fn)(const struct paqm_ipc_rate *rate, gpointer data);

struct ipc_client *ipc_client_new(const char *path, const struct paqm_ipc_register *flow,
				  ipc_rate_fn fn, gpointer data);
void ipc_client_status(struct ipc_client *c, guint64 wire_bps, guint gop, guint qp);
void ipc_client_free(struct ipc_client *c);

#endif /* PAQM_STREAMER_IPC_CLIENT_H */
