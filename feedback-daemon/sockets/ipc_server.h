/* SPDX-License-Identifier: GPL-2.0 */
/* Server of the socket of media senders (paqm_ipc.h). */
#ifndef PAQMD_IPC_SERVER_H
#define PAQMD_IPC_SERVER_H

#include "feedback-daemon/loop.h"
#include "feedback-daemon/sockets/request.h"
#include "feedback-daemon/host/sandbox.h"

#define IPC_CLIENTS 64
#define IPC_FLOWS_PER_CLIENT 4096

/* Told of flows that are registered or removed: @event is "register" or "unregister". */
typedef void ipc_flow_sink(struct daemon *d, const char *event, const struct flow *f);

/* Listen at @path, as @user later on. Return: 0, or -1 after having logged why not. */
int ipc_open(struct daemon *d, const char *path, const struct sandbox_user *user,
	     ipc_flow_sink *sink);
void ipc_close(struct daemon *d);

/* The flow's rate record is new: its client gets it as soon as it can. */
void ipc_push(struct daemon *d, const struct flow *f);

/* The filter of the flows after this change is in force: answer their registrations. */
void ipc_filter_in_force(struct daemon *d, uint64_t change);

/* Fill in the clients, and whom they run as. */
void ipc_stats(const struct daemon *d, struct request_env *env);

#endif /* PAQMD_IPC_SERVER_H */
