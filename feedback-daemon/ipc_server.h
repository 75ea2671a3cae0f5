/* SPDX-License-Identifier: GPL-2.0 */
/* Server of the socket of media senders (paqm_ipc.h). */
#ifndef PAQMD_IPC_SERVER_H
#define PAQMD_IPC_SERVER_H

#include "loop.h"
#include "sandbox.h"

#define IPC_CLIENTS 64
#define IPC_FLOWS_PER_CLIENT 4096

/* Listen at @path, as @user later on. Return: 0, or -1 after having logged why not. */
int ipc_open(struct daemon *d, const char *path, const struct sandbox_user *user);
void ipc_close(struct daemon *d);

/* The flow's rate record is new: its client gets it as soon as it can. */
void ipc_push(struct daemon *d, const struct flow *f);

/* The filter is in force: answer the registrations that led to it. */
void ipc_flush(struct daemon *d);

unsigned int ipc_clients(const struct daemon *d);

#endif /* PAQMD_IPC_SERVER_H */
