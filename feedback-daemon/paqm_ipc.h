/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Local interface between paqmd and media senders: fixed binary records on a
 * Unix SOCK_SEQPACKET socket, host byte order (both ends are on one host).
 *
 * A sender connects, registers each flow once and then only reads. The daemon
 * pushes the newest allowance of a flow; a slow reader loses old records, never
 * the newest. On registration it gets the present state at once. Closing the
 * socket unregisters its flows.
 *
 * Both ends may be of different releases. Records only grow, at their end: who reads
 * takes as much as it knows, and what an older end does not send counts as 0. Kinds that
 * it does not know are passed over. The version changes only if an old end would
 * misread what is new, and then it is refused.
 */
#ifndef PAQM_IPC_H
#define PAQM_IPC_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define PAQM_IPC_PATH "/run/paqmd/client.sock" /* overridden by $PAQM_SOCKET */
#define PAQM_IPC_MAGIC 0x50514950U
#define PAQM_IPC_VERSION 1
#define PAQM_IPC_RECORD_MAX 512		   /* bytes that a record may ever have */
#define PAQM_IPC_RATE_MAX 1000000000000ULL /* bit/s: what a message can say */

enum paqm_ipc_kind {
	PAQM_IPC_REGISTER = 1,	 /* client -> daemon, struct paqm_ipc_register */
	PAQM_IPC_REGISTERED = 2, /* daemon -> client, struct paqm_ipc_registered */
	PAQM_IPC_RATE = 3,	 /* daemon -> client, struct paqm_ipc_rate */
	PAQM_IPC_UNREGISTER = 4, /* client -> daemon, struct paqm_ipc_unregister */
	PAQM_IPC_STATUS = 5,	 /* client -> daemon, struct paqm_ipc_status */
};

struct paqm_ipc_hdr {
	uint32_t magic;
	uint8_t version;
	uint8_t kind;
	uint16_t len; /* of the whole record */
};

/* Register one media flow. Addresses are IPv6 or IPv4-mapped IPv6. */
struct paqm_ipc_register {
	struct paqm_ipc_hdr hdr;
	uint8_t saddr[16]; /* all zero: whatever the route gives */
	uint8_t daddr[16];
	uint16_t sport; /* host order */
	uint16_t dport;
	uint32_t ssrc;	    /* 0: not checked */
	uint64_t floor_bps; /* IP level; an allowance never goes below */
	uint64_t ceil_bps;  /* nor above */
	uint32_t gop_us;    /* duration over which the sender holds a quantizer */
	uint32_t answer_us; /* how long it takes to follow a new rate */
	uint64_t cookie;    /* chosen by the client, comes back in every record */
};

struct paqm_ipc_registered {
	struct paqm_ipc_hdr hdr;
	uint64_t cookie;
	int32_t error; /* 0 or an errno */
	uint32_t pad;
};

enum paqm_ipc_cause {
	PAQM_CAUSE_NONE = 0,   /* no router has spoken: rate_bps is 0 */
	PAQM_CAUSE_ERF = 1,    /* absolute rate */
	PAQM_CAUSE_ECF = 2,    /* relative value */
	PAQM_CAUSE_EXPIRED = 3 /* the last router fell silent: rate_bps is 0 */
};

/* The newest allowance of a flow: minimum over its routers. */
struct paqm_ipc_rate {
	struct paqm_ipc_hdr hdr;
	uint64_t cookie;
	uint64_t rate_bps;  /* IP level, headers included; 0: no advice in force */
	uint64_t router_id; /* the router that gives the minimum */
	uint8_t router[16]; /* its address, IPv4-mapped */
	uint64_t mono_ns;   /* CLOCK_MONOTONIC less the age of the message; sleep counts */
	uint32_t value;	    /* binary32 ECF value of that message */
	uint32_t seq;
	uint16_t period_ms;
	uint16_t qdelay_100us;
	uint8_t cause;	  /* enum paqm_ipc_cause */
	uint8_t flags;	  /* PAQM_F_* of the message */
	uint16_t routers; /* routers with an allowance in force */
};

struct paqm_ipc_unregister {
	struct paqm_ipc_hdr hdr;
	uint64_t cookie;
};

/* What a sender does with the advice, once per GOP; shown by paqmctl. */
struct paqm_ipc_status {
	struct paqm_ipc_hdr hdr;
	uint64_t cookie;
	uint64_t wire_bps; /* sent during the last GOP, IP level */
	uint32_t gop;
	uint32_t qp;
};

/* IPv4, mapped into IPv6. */
static inline int paqm_ipc_is_v4(const uint8_t a[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(a, prefix, sizeof(prefix));
}

/* Unspecified, of either version. */
static inline int paqm_ipc_is_any(const uint8_t a[16])
{
	static const uint8_t zero[16];

	return !memcmp(a, zero, 16) || (paqm_ipc_is_v4(a) && !memcmp(a + 12, zero, 4));
}

/* What is impossible about a registration, whatever else there is: both ends judge by it, so
 * that a client need not ask for what the daemon never takes. Return: 0 or an errno.
 */
static inline int paqm_ipc_fault(const struct paqm_ipc_register *r)
{
	if (!paqm_ipc_is_any(r->saddr) && paqm_ipc_is_v4(r->saddr) != paqm_ipc_is_v4(r->daddr))
		return EAFNOSUPPORT;
	if (paqm_ipc_is_any(r->daddr) || !r->sport || !r->dport || !r->ceil_bps ||
	    r->ceil_bps > PAQM_IPC_RATE_MAX || r->floor_bps > r->ceil_bps)
		return EINVAL;
	return 0;
}

_Static_assert(sizeof(struct paqm_ipc_hdr) == 8, "record layout");
_Static_assert(sizeof(struct paqm_ipc_register) == 80, "record layout");
_Static_assert(sizeof(struct paqm_ipc_registered) == 24, "record layout");
_Static_assert(sizeof(struct paqm_ipc_rate) == 72, "record layout");
_Static_assert(sizeof(struct paqm_ipc_unregister) == 16, "record layout");
_Static_assert(sizeof(struct paqm_ipc_status) == 32, "record layout");

#endif /* PAQM_IPC_H */
