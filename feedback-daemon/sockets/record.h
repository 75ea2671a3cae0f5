/* SPDX-License-Identifier: GPL-2.0 */
/* Parser of the records that clients send (paqm_ipc.h). */
#ifndef PAQMD_RECORD_H
#define PAQMD_RECORD_H

#include <stddef.h>

#include "feedback-daemon/paqm_ipc.h"

/* @hdr.kind: beyond PAQM_IPC_STATUS it is of a later release, and the rest is 0 */
union record {
	struct paqm_ipc_hdr hdr;
	struct paqm_ipc_register reg;
	struct paqm_ipc_unregister unreg;
	struct paqm_ipc_status status;
};

/**
 * record_parse() - take one record of a client apart
 * @buf: what was received, up to PAQM_IPC_RECORD_MAX bytes
 * @len: its true length, even if more than fits
 * @out: the record
 *
 * Return: NULL, or what is wrong with it.
 */
const char *record_parse(const void *buf, size_t len, union record *out);

#endif /* PAQMD_RECORD_H */
