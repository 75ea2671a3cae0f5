/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * libpaqmclient: what a media sender needs to follow P-AQM routers.
 *
 * A sender opens a client, adds the flows that it sends, and polls one file
 * descriptor in its own loop. Whenever that is readable, paqm_client_next() says
 * what rate the routers allow each flow. Nothing blocks, there are no threads and no
 * callbacks. paqmd may be absent, start later or be restarted: the library keeps
 * trying, registers the flows again, and keeps the last rate for three seconds
 * (PAQM_CLIENT_GRACE_MS) meanwhile.
 *
 * A rate is an upper bound, in bit/s at the IP level (headers included). Send no
 * more; follow it within a frame; keep your own congestion control, and rely on
 * it alone while there is no advice.
 *
 * Calls for one client must not overlap; different clients are independent. A child
 * that a process forks must not use its clients.
 * Functions that can fail return a negative errno. See libpaqmclient(3).
 */
#ifndef PAQMCLIENT_H
#define PAQMCLIENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAQM_CLIENT_GRACE_MS 3000 /* the shortest life of an allowance */
#define PAQM_CLIENT_ADDR 46	  /* an address as text, terminated */

struct paqm_client;

/* Where the advice for a flow comes from, or why there is none. */
enum paqm_client_cause {
	PAQM_CLIENT_NONE = 0,	 /* no advice yet */
	PAQM_CLIENT_ERF = 1,	 /* rate: from the absolute rate of a message */
	PAQM_CLIENT_ECF = 2,	 /* rate: from the relative value of a message */
	PAQM_CLIENT_EXPIRED = 3, /* the last router has fallen silent */
	PAQM_CLIENT_LOST = 4,	 /* paqmd has been unreachable, or silent, for too long */
	PAQM_CLIENT_REFUSED = 5, /* paqmd refused the flow: see error */
	PAQM_CLIENT_OTHER = 255, /* something of a later paqmd; the rate counts */
};

/* The newest advice for a flow. */
struct paqm_client_advice {
	int flow;		       /* of paqm_client_add() */
	int cause;		       /* enum paqm_client_cause */
	uint64_t rate_bps;	       /* upper bound; 0: no advice */
	int error;		       /* errno, with PAQM_CLIENT_REFUSED */
	uint32_t seq;		       /* of the message */
	uint64_t router_id;	       /* of the router that sets the rate */
	char router[PAQM_CLIENT_ADDR]; /* its address */
	float value;		       /* relative value of the message (ECF) */
	float qdelay_ms;	       /* delay of that router's media queue */
	uint32_t period_ms;	       /* between its messages */
	uint32_t routers;	       /* routers whose advice is in force */
	uint64_t captured_ns;	       /* CLOCK_MONOTONIC less the age of the message */
};

/**
 * paqm_client_open() - create a client
 * @path: paqmd's socket; NULL: $PAQM_SOCKET, else /run/paqmd/client.sock
 *
 * It need not be there yet. Return: the client, or NULL with errno: ENAMETOOLONG,
 * ENOMEM, EMFILE and the like.
 */
struct paqm_client *paqm_client_open(const char *path);

/* Disconnect and free the client; NULL is allowed. */
void paqm_client_close(struct paqm_client *c);

/* Return: the descriptor to poll for reading; it never changes. */
int paqm_client_fd(const struct paqm_client *c);

/**
 * paqm_client_add() - add a flow
 * @c: client
 * @source: address that it is sent from, IPv4 or IPv6; NULL or "": any
 * @source_port: UDP port that it is sent from
 * @destination: address that it is sent to
 * @destination_port: UDP port that it is sent to
 * @ssrc: of its RTP packets; 0: any
 * @floor_bps: advice is never below; 0: no floor
 * @ceiling_bps: advice is never above; not 0
 *
 * Return: the number of the flow, 0 or more, or -EINVAL (no address, a port or
 * limit out of range: floor above ceiling, more than 10^12 bit/s), -EAFNOSUPPORT (from
 * IPv4 to IPv6 or the other way), -ENOMEM. This and all other changes are sent to
 * paqmd by the next call of paqm_client_next(), for which the descriptor becomes readable;
 * its answer comes as advice. If another client has registered these packets, or there is
 * no room, that is reported once (PAQM_CLIENT_REFUSED); registration is tried again after
 * half a second and then at increasing intervals of up to 8 s.
 */
int paqm_client_add(struct paqm_client *c, const char *source, uint16_t source_port,
		    const char *destination, uint16_t destination_port, uint32_t ssrc,
		    uint64_t floor_bps, uint64_t ceiling_bps);

/* Change the limits of a flow. Return: 0, -EINVAL or -ENOENT. */
int paqm_client_limits(struct paqm_client *c, int flow, uint64_t floor_bps, uint64_t ceiling_bps);

/* Report how the sender works, for paqmctl: how long it keeps a quantizer and how
 * long it takes to follow advice, in microseconds. Return: 0 or -ENOENT.
 */
int paqm_client_timing(struct paqm_client *c, int flow, uint32_t gop_us, uint32_t answer_us);

/* The flow is no longer sent; its number may be given to another. Return: 0 or -ENOENT. */
int paqm_client_remove(struct paqm_client *c, int flow);

/**
 * paqm_client_next() - take the next update
 * @c: client
 * @a: filled in
 *
 * Call it when the descriptor is readable, until it returns 0. Of several rates
 * for a flow only the newest is reported. Return: 1 if there was an update, 0 if
 * there is none.
 */
int paqm_client_next(struct paqm_client *c, struct paqm_client_advice *a);

/* What the router that sets a flow's rate says besides. */
enum paqm_client_said {
	PAQM_CLIENT_SAID_OVERLOAD = 1, /* its media queue is longer than it should be */
	PAQM_CLIENT_SAID_POLICED = 2,  /* it drops what this flow sends beyond the rate */
	PAQM_CLIENT_SAID_FINAL = 4,    /* the rate is the fair rate, not a step towards it */
	PAQM_CLIENT_SAID_AUTH = 8,     /* its message was verified with a key */
};

/* What came with the newest advice of a flow. Return: bits of enum paqm_client_said; 0 without
 * advice, and for a flow that is not there. Bits of later releases may be set, too.
 */
unsigned int paqm_client_said(struct paqm_client *c, int flow);

/* Report how the sender followed the advice, for paqmctl: bit/s sent, number of the group
 * of pictures, mean quantizer. Lost if paqmd is slow. Return: 0, -ENOENT, -EAGAIN or
 * -ENOTCONN.
 */
int paqm_client_status(struct paqm_client *c, int flow, uint64_t wire_bps, uint32_t gop,
		       uint32_t qp);

/* Return: why paqmd is not connected, or that it does not answer, as text; NULL if it does. Valid
 * until the next call.
 */
const char *paqm_client_trouble(const struct paqm_client *c);

/* Return: the path of the socket. */
const char *paqm_client_path(const struct paqm_client *c);

#ifdef __cplusplus
}
#endif

#endif /* PAQMCLIENT_H */
