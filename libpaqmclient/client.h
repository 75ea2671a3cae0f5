/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the parts of libpaqmclient share: a client, its flows, and internal functions. */
#ifndef PAQMCLIENT_CLIENT_H
#define PAQMCLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>
#include <time.h>

#include "feedback-daemon/paqm_ipc.h"
#include "libpaqmclient/paqmclient.h"

#define NEVER UINT64_MAX
#define GRACE_NS (PAQM_CLIENT_GRACE_MS * 1000000ULL)

/* Advice holds for three periods of its router, within these limits. Then paqmd says that it has
 * expired; if it does not for this much longer, it hangs.
 */
#define LIFE_MIN_NS 3000000000ULL
#define LIFE_MAX_NS 30000000000ULL
#define LIFE_MORE_NS 1000000000ULL

enum flow_state {
	FREE = 0,
	UNKNOWN, /* to be registered with paqmd */
	KNOWN,
	LEAVING, /* to be unregistered */
};

struct flow {
	enum flow_state state;
	bool news;
	int next;	   /* flow with news after this one, -1: none */
	uint64_t pause_ns; /* before the last attempt; 0: not refused yet */
	uint64_t again_ns; /* when to register again; 0: not at all */
	uint8_t said;	   /* PAQM_F_* that came with the advice */
	uint64_t ends_ns;  /* when the advice ends unless it is renewed; NEVER: there is none */
	bool lost;	   /* the connection that gave it has ended */
	bool told;	   /* the connection was told of it */
	struct paqm_ipc_register reg;
	struct paqm_client_advice advice;
};

struct paqm_client {
	struct sockaddr_un sa;
	int epoll, timer, fd; /* fd: -1 while not connected */
	const char *trouble;
	uint64_t retry_ns; /* when to connect, NEVER if connected */
	uint64_t ends_ns;  /* not later than that of any flow */
	uint64_t again_ns; /* when the first of the refused flows is due */
	uint64_t doubt_ns; /* when to take it that nobody answers; NEVER: not at all */
	bool heard;	   /* this connection has told something: systemd alone accepts, too */
	uint64_t cookie;   /* last one given */
	struct flow *flow;
	int flows;	 /* slots */
	int last_slot;	 /* that was taken */
	int first, last; /* of the flows with news, -1: none */
	bool untold;	 /* some are UNKNOWN or LEAVING */
	bool waits_room; /* for the connection to take more */
};

static inline uint64_t now_ns(void)
{
	struct timespec t;

	/* includes suspend: no advice outlives that */
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* Return: the application's flow of this number, or NULL. */
static inline struct flow *flow_of(struct paqm_client *c, int n)
{
	if (n < 0 || n >= c->flows || c->flow[n].state == FREE || c->flow[n].state == LEAVING)
		return NULL;
	return &c->flow[n];
}

static inline struct paqm_ipc_hdr header(uint8_t kind, size_t len)
{
	return (struct paqm_ipc_hdr){.magic = PAQM_IPC_MAGIC,
				     .version = PAQM_IPC_VERSION,
				     .kind = kind,
				     .len = (uint16_t)len};
}

/* connection.c */

/* Set the timer to whatever is due first. */
void set_timer(struct paqm_client *c);

/* Return: 1 sent, 0 not yet, -1 the connection is gone. */
int put(struct paqm_client *c, const void *record, size_t len);

/* Connect, and tell paqmd of all flows. */
void try_connect(struct paqm_client *c);

/* The connection is gone, or could not be made: it is tried again. */
void lose(struct paqm_client *c, const char *why);

/* Tell paqmd what it does not know yet, as far as the connection takes it. */
void tell(struct paqm_client *c);

/* There is something to tell: the descriptor becomes readable for it. */
void untold(struct paqm_client *c);

/* answers.c */

/* Take what paqmd has sent. */
void receive(struct paqm_client *c);

/* Register the refused flows that are due again. */
void ask_again(struct paqm_client *c, uint64_t now);

/* The flow's advice ends then, unless it is renewed. */
void end_at(struct paqm_client *c, struct flow *f, uint64_t at);

/* End advice that was not renewed in time. */
void end_advice(struct paqm_client *c, uint64_t now);

#endif /* PAQMCLIENT_CLIENT_H */
