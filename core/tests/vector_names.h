/* SPDX-License-Identifier: GPL-2.0 */
/* Refusals of the codec by the names that paqmd counts them under (docs/protocol.md). */
#ifndef PAQM_VECTOR_NAMES_H
#define PAQM_VECTOR_NAMES_H

#include "../paqm_msg.h"

static const char *const vector_refusals[PAQM_MSG_ERR_MAX] = {
	[PAQM_MSG_OK] = "none",		[PAQM_MSG_SHORT] = "msg_length",
	[PAQM_MSG_TYPE] = "msg_type",	[PAQM_MSG_CHECKSUM] = "msg_checksum",
	[PAQM_MSG_MAGIC] = "msg_magic", [PAQM_MSG_VERSION_ERR] = "msg_version",
	[PAQM_MSG_QUOTE] = "msg_quote", [PAQM_MSG_OPTION] = "msg_option",
	[PAQM_MSG_VALUE] = "msg_value", [PAQM_MSG_MISMATCH] = "msg_mismatch",
};

#endif /* PAQM_VECTOR_NAMES_H */
