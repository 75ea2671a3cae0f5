// SPDX-License-Identifier: GPL-2.0
/* Parser of client records; see record.h. */
#include "feedback-daemon/sockets/record.h"

#include <string.h>

const char *record_parse(const void *buf, size_t len, union record *out)
{
	struct paqm_ipc_hdr hdr;
	size_t want;

	if (len < sizeof(hdr))
		return "shorter than a header";
	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.magic != PAQM_IPC_MAGIC)
		return "wrong magic";
	if (hdr.version != PAQM_IPC_VERSION)
		return "unknown version";
	if (hdr.len != len || len > PAQM_IPC_RECORD_MAX)
		return "wrong length";
	memset(out, 0, sizeof(*out));
	out->hdr = hdr;
	switch (hdr.kind) {
	case PAQM_IPC_REGISTER:
		want = sizeof(out->reg);
		break;
	case PAQM_IPC_UNREGISTER:
		want = sizeof(out->unreg);
		break;
	case PAQM_IPC_STATUS:
		want = sizeof(out->status);
		break;
	default:
		return hdr.kind > PAQM_IPC_STATUS ? NULL : "a kind that clients do not send";
	}
	if (len < want)
		return "shorter than its kind";
	memcpy(out, buf, want);
	return NULL;
}
