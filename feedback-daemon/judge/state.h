/* SPDX-License-Identifier: GPL-2.0 */
/* What the judging part of paqmd keeps: flows, users, routers, messages that wait, counters. */
#ifndef PAQMD_STATE_H
#define PAQMD_STATE_H

#include "feedback-daemon/judge/allow.h"
#include "feedback-daemon/judge/keys.h"
#include "feedback-daemon/judge/ring.h"
#include "feedback-daemon/judge/share.h"
#include "feedback-daemon/paqm_ipc.h"

#define NS_PER_S 1000000000ULL

#ifndef ENGINE_FLOWS /* fuzz targets have few: their engine is reset for every input */
#define ENGINE_FLOWS 10240
#define ENGINE_HASH 16384U /* power of two */
#endif
#define ENGINE_ROUTERS 64
#define ENGINE_USERS 64		/* with flows; each has a client */
#define ENGINE_DIGESTS 2000000U /* of all flows: 40 MB; then rings stop growing */

#define ENGINE_EARLY 256 /* messages that wait for the packets that they quote */
#define ENGINE_EARLY_LEN (PAQM_IP6_HDR + PAQM_MSG_MAX) /* the longest that could be believed */

/* Room for rings beyond the RING_MIN of each, shared among users. */
#define ENGINE_SPARE (ENGINE_DIGESTS - ENGINE_FLOWS * RING_MIN)

/* Why a message was refused; the order is that of the checks. */
#define REFUSE_REASONS(X)                                                                          \
	X(NONE, "none")                                                                            \
	/* the IP packet */                                                                        \
	X(IP_CUT, "ip_cut")                                                                        \
	X(IP_HEADER, "ip_header")                                                                  \
	X(IP_CHECKSUM, "ip_checksum")                                                              \
	X(IP_FRAGMENT, "ip_fragment")                                                              \
	X(IP_OPTIONS, "ip_options")                                                                \
	/* (a) the message; the order of enum paqm_msg_err */                                      \
	X(MSG_SHORT, "msg_length")                                                                 \
	X(MSG_TYPE, "msg_type")                                                                    \
	X(MSG_CHECKSUM, "msg_checksum")                                                            \
	X(MSG_MAGIC, "msg_magic")                                                                  \
	X(MSG_VERSION, "msg_version")                                                              \
	X(MSG_QUOTE, "msg_quote")                                                                  \
	X(MSG_OPTION, "msg_option")                                                                \
	X(MSG_VALUE, "msg_value")                                                                  \
	X(MSG_MISMATCH, "msg_mismatch")                                                            \
	/* (b) the flow */                                                                         \
	X(FLOW_UNKNOWN, "flow_unknown")                                                            \
	X(FLOW_SSRC, "flow_ssrc")                                                                  \
	/* (c) the quoted bytes */                                                                 \
	X(QUOTE_SHORT, "quote_short")                                                              \
	X(QUOTE_UNKNOWN, "quote_unknown")                                                          \
	X(QUOTE_OLD, "quote_old")                                                                  \
	/* (d) the sequence */                                                                     \
	X(SEQ_REPLAY, "seq_replay")                                                                \
	X(SEQ_STALE, "seq_stale")                                                                  \
	X(BOOT_OLD, "boot_old")                                                                    \
	/* (e) the tag */                                                                          \
	X(AUTH_MISSING, "auth_missing")                                                            \
	X(KEY_UNKNOWN, "key_unknown")                                                              \
	X(AUTH_BAD, "auth_bad")                                                                    \
	/* (f) limits of this host */                                                              \
	X(ROUTERS_FULL, "routers_full")                                                            \
	X(RATE_ROUTER, "rate_router")                                                              \
	X(RATE_GLOBAL, "rate_global")

enum refuse {
#define X(name, text) REFUSE_##name,
	REFUSE_REASONS(X)
#undef X
		REFUSE_MAX
};

/* Why a flow was not registered. */
#define NOT_TAKEN_REASONS(X)                                                                       \
	X(IMPOSSIBLE, "impossible")   /* addresses, ports or limits */                             \
	X(TAKEN, "taken")	      /* another flow has these packets, or this cookie */         \
	X(CLIENT_FULL, "client_full") /* as many as one client may have */                         \
	X(USER_FULL, "user_full")     /* more than its user leaves to others */                    \
	X(ALL_FULL, "all_full")	      /* as many as there may be */                                \
	X(NO_MEMORY, "no_memory")

enum not_taken {
#define X(name, text) NOT_TAKEN_##name,
	NOT_TAKEN_REASONS(X)
#undef X
		NOT_TAKEN_MAX
};

/* Why a digest was dropped before it had expired. */
#define FORGOT_REASONS(X)                                                                          \
	X(FLOW_FULL, "flow_full") /* RING_CAP of them */                                           \
	X(USER_FULL, "user_full") /* its user has taken a full share */                            \
	X(NO_MEMORY, "no_memory")

enum forgot {
#define X(name, text) FORGOT_##name,
	FORGOT_REASONS(X)
#undef X
		FORGOT_MAX
};

/* A packet's ends, and whose socket it is from (host/owner.h). @saddr is open where the packet was
 * translated after it had left the socket.
 */
struct owner_ends {
	struct addr saddr, daddr;
	uint16_t sport, dport;
};

enum owner { OWNER_UNKNOWN, OWNER_HIS, OWNER_OTHER };

struct bucket {
	uint64_t credit_ns;
	uint64_t t_ns;
};

/* @per_s tokens a second, @burst of them at once */
struct bucket_limit {
	uint32_t per_s;
	uint32_t burst;
};

struct engine_params {
	enum allow_use use;
	bool require_auth; /* believe no router without a key */
	bool legacy;	   /* Source Quench without object, though it proves nothing */
	uint64_t digest_life_ns;
	uint64_t early_ns;	    /* how long a message may precede the packet it quotes */
	struct bucket_limit router; /* per router, */
	struct bucket_limit flow;   /* plus this per flow that it tells */
	struct bucket_limit global;
};

/* What packets are matched against; an unspecified @saddr matches every source. */
struct flow_key {
	struct addr saddr, daddr;
	uint16_t sport, dport;
	bool used;
	/* others with the same hash of destination and ports, of owner and cookie; as in
	 * the engine's index: number + 1, 0 is the end
	 */
	uint32_t by_tuple, by_cookie;
};

/* How often an owner was looked for since then. */
struct looks {
	uint64_t since_ns;
	uint32_t n;
};

/* An address that a flow has sent from, and when it did so last. */
struct sent_from {
	struct addr addr;
	uint64_t ns;
};

#define FLOW_SOURCES 4 /* at once; the one that was used the longest ago gives way */

struct flow {
	uint64_t owner;	 /* the client */
	uint64_t cookie; /* the client's name for the flow */
	uint64_t serial; /* never used twice; bound into the digests */
	uint32_t user;	 /* in the engine's table */
	uint32_t ssrc;
	uint64_t floor_bps, ceil_bps;
	uint32_t gop_us, answer_us;
	struct addr source; /* if left open at registration: the address found in its own packets */
	uint64_t source_ns; /* when that was found, 0: never */
	struct looks source_looks, other_looks;	  /* for the owner of that address, of others */
	struct sent_from sent_from[FLOW_SOURCES]; /* of its own packets; ns 0: none */
	struct ring ring;
	struct allow_set allow;
	struct paqm_ipc_rate rate; /* newest record for the client */
	struct paqm_ipc_status status;
	bool has_status;
	struct allow heard; /* newest believed message, kept after its expiry */
	uint64_t packets;   /* media packets seen leaving */
	uint64_t others;    /* the same, but not from its user's socket */
	uint64_t accepted;
	uint64_t refused;	 /* messages that named this flow and were not believed */
	enum refuse refused_why; /* of the newest of them */
};

/* A user that clients run as. */
struct user {
	uint32_t uid;
	uint32_t flows;	  /* 0: the slot is free */
	uint32_t digests; /* that fit into their rings */
};

struct router {
	bool used;
	uint64_t id;
	struct addr addr;
	struct paqm_msg msg; /* newest believed message, to whichever flow */
	uint64_t mono_ns;
	uint64_t accepted;
	uint64_t refused; /* proven, yet stale or too many */
	struct bucket bucket;
	uint64_t second_ns;	    /* when the present second began */
	uint32_t told, told_before; /* flows within it, within the one before */
};

/* A message that quotes a packet not seen leaving. If the congested queue is this host's own,
 * messages arrive while the quoted packets still wait in it.
 */
struct early {
	uint64_t digest; /* of the packet */
	uint64_t due_ns; /* when it is judged regardless; 0: the packet has left */
	uint32_t len;
	uint8_t ip[ENGINE_EARLY_LEN];
};

struct engine {
	struct engine_params params;
	uint8_t key[PAQM_SIPHASH_KEY]; /* of the digests */
	struct keyring keyring;
	uint64_t serial;
	uint32_t used;	   /* flows */
	uint32_t digests;  /* that fit into the rings */
	uint64_t next_ns;  /* nothing expires before */
	uint64_t early_ns; /* when to ask for the next one that has waited; UINT64_MAX: none does */
	uint32_t waiting;
	uint64_t trim_ns; /* when to look for rings that are too large; UINT64_MAX: none is */
	uint32_t tuple_index[ENGINE_HASH], cookie_index[ENGINE_HASH];
	struct flow_key keys[ENGINE_FLOWS]; /* apart from the flows: it is searched per packet */
	uint64_t due_ns[ENGINE_FLOWS];	    /* when an allowance of the flow expires */
	uint32_t last;			    /* slot that was taken last */
	struct user users[ENGINE_USERS];
	struct router routers[ENGINE_ROUTERS];
	struct early early[ENGINE_EARLY]; /* the first @waiting of them */
	struct bucket bucket;
	uint64_t not_taken[NOT_TAKEN_MAX];
	uint64_t forgot[FORGOT_MAX];
	uint64_t accepted;
	uint64_t refused[REFUSE_MAX];
	uint64_t media; /* digests kept */
	uint64_t media_ignored;
	uint64_t media_others; /* of flows whose source was left open, not from their user's socket
				*/
	/* looks up whose packet it is; NULL: all are accepted */
	enum owner (*owner)(const struct owner_ends *p, uint32_t uid);
	struct flow flows[ENGINE_FLOWS]; /* last: those not in use are never touched */
};

#endif /* PAQMD_STATE_H */
