/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a feedback message consists of, whatever its version: numbers on the wire, what it
 * says, and why one is refused (docs/protocol.md). paqm_msg.h encodes and decodes it.
 */
#ifndef PAQM_MSG_FORMAT_H
#define PAQM_MSG_FORMAT_H

#include "paqm_quote.h"

#define PAQM_ICMP_TYPE_EXP 253	/* RFC 4727 experiment */
#define PAQM_ICMP_TYPE_QUENCH 4 /* Source Quench of RFC 792, deprecated by RFC 6633 */
/* The carriers of messages: PAQM_FEEDBACK_*, and the type of messages about IPv4 */
#define PAQM_ICMP_CARRIERS(carrier)                                                                \
	carrier(ICMP, PAQM_ICMP_TYPE_EXP) carrier(QUENCH, PAQM_ICMP_TYPE_QUENCH)
#define PAQM_ICMP6_TYPE_EXP 200 /* RFC 4443 private experiment, informational */
#define PAQM_ICMP6_TYPE_OLD 100 /* of the error class: version 1 */
#define PAQM_ICMP_HDR 8
#define PAQM_MSG_VERSION 2
#define PAQM_EXT_HDR 4	    /* of the extension structure */
#define PAQM_EXT_VERSION 2  /* of RFC 4884, in the upper four bits */
#define PAQM_OBJ_CLASS 0xF7 /* RFC 4884: private use, hence the magic */
#define PAQM_OBJ_TYPE 1
#define PAQM_OBJ_MAGIC 0x5041514DU /* "PAQM" */
#define PAQM_OBJ_HDR 4
#define PAQM_OBJ_FIXED (PAQM_OBJ_HDR + 40)
#define PAQM_OBJ_MAX 128 /* with options that are yet to come */
#define PAQM_TAG_BYTES (18 + PAQM_OBJ_MAX + PAQM_PROOF_MAX)
#define PAQM_MSG_MAX (PAQM_ICMP_HDR + PAQM_QUOTE_MAX + 4 + PAQM_EXT_HDR + PAQM_OBJ_MAX)

/* flags */
#define PAQM_F_OVERLOAD 0x01 /* the media queue exceeds its limit target */
#define PAQM_F_POLICED 0x02  /* this flow is being policed */
#define PAQM_F_FINAL 0x04    /* the rate is the fair rate, not a step towards it */
#define PAQM_F_AUTH 0x08     /* the tag is valid for key_id */

/* Options: type and length of the value, 16 bits each, the value, zeros up to a word of 4 bytes. */
#define PAQM_OPT_HDR 4
#define PAQM_OPT_RELATIVE 1  /* ECF value, binary32 */
#define PAQM_OPT_MUST 0x8000 /* who does not know such an option refuses the message */
#define PAQM_OPT_TAG 0x8001  /* SipHash-2-4 of paqm_tag_bytes(); the last option */
#define PAQM_OPT_RELATIVE_LEN (PAQM_OPT_HDR + 4)
#define PAQM_OPT_TAG_LEN (PAQM_OPT_HDR + 8)
#define PAQM_OBJ_SENT_MAX (PAQM_OBJ_FIXED + PAQM_OPT_RELATIVE_LEN + PAQM_OPT_TAG_LEN)
#define PAQM_MSG_SENT_MAX                                                                          \
	(PAQM_ICMP_HDR + PAQM_IP6_HDR + 8 + PAQM_PROOF_MAX + PAQM_EXT_HDR + PAQM_OBJ_SENT_MAX)

/* Does a carrier use this ICMP type? */
static inline int paqm_icmp_carries(paqm_u8 type)
{
#define PAQM_IS_TYPE(carrier, number) || type == (number)
	return 0 PAQM_ICMP_CARRIERS(PAQM_IS_TYPE);
#undef PAQM_IS_TYPE
}

/**
 * struct paqm_msg - what a message says
 * @version: decoded: of the message, 1 or 2
 * @flags: PAQM_F_*
 * @key_id: key of @tag, 0 when unauthenticated
 * @router_id: stable identity of the router
 * @boot: nonce that changes whenever @seq restarts
 * @seq: notice round, increasing per router and boot (serial arithmetic)
 * @ecf: ECF value, binary32: <1 multiply, 1 hold, >1 add bit/s; 0: it says none
 * @rate: fair rate of the flow, bit/s on the IP layer
 * @period_ms: outer period d
 * @qdelay_100us: delay of the media queue now, 0.1 ms
 * @flows: counted media flows, saturating
 * @util: link utilisation of the last period, 65535 == 100 %
 * @tag: with PAQM_F_AUTH
 * @object: decoded: our object within the message
 * @object_len: its length
 */
struct paqm_msg {
	paqm_u8 version;
	paqm_u8 flags;
	paqm_u16 key_id;
	paqm_u64 router_id;
	paqm_u32 boot;
	paqm_u32 seq;
	paqm_u32 ecf;
	paqm_u64 rate;
	paqm_u16 period_ms;
	paqm_u16 qdelay_100us;
	paqm_u16 flows;
	paqm_u16 util;
	paqm_u64 tag;
	const paqm_u8 *object;
	paqm_u32 object_len;
};

/* Why a message was refused; the order is that of the checks. */
enum paqm_msg_err {
	PAQM_MSG_OK = 0,
	PAQM_MSG_SHORT,	      /* too short for header, quote and object, or too long */
	PAQM_MSG_TYPE,	      /* ICMP type or code is not ours */
	PAQM_MSG_CHECKSUM,    /* ICMP checksum wrong */
	PAQM_MSG_MAGIC,	      /* no object of ours */
	PAQM_MSG_VERSION_ERR, /* version not understood */
	PAQM_MSG_QUOTE,	      /* quoted packet is not UDP of the carrier's IP version, or is cut */
	PAQM_MSG_OPTION,      /* an option is cut, comes twice, or is unknown and must be known */
	PAQM_MSG_VALUE,	      /* a rate or factor is NaN, infinite, negative or out of range */
	PAQM_MSG_MISMATCH,    /* version 1: the ICMP value differs from the object */
	PAQM_MSG_ERR_MAX
};

#endif /* PAQM_MSG_FORMAT_H */
