/* SPDX-License-Identifier: GPL-2.0 */
/* Feedback messages: the checks that one must pass before it is believed (docs/protocol.md). */
#ifndef PAQMD_MESSAGE_H
#define PAQMD_MESSAGE_H

#include "feedback-daemon/judge/state.h"

/* The verdict on a message; its flag AUTH is kept only if the tag was verified. Pointers are valid
 * until the next call.
 */
struct verdict {
	enum refuse refuse;
	struct addr addr; /* source; unspecified if the IP header was unusable */
	bool decoded;	  /* @msg is valid */
	struct paqm_msg msg;
	struct flow *flow;
	bool changed; /* the flow's rate record is new and must be pushed */
	bool waits;   /* not yet decided or counted: see engine_waited() */
};

/* An incoming IP packet with a feedback message, captured at @now_ns. */
void engine_message(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns,
		    struct verdict *v);

/**
 * engine_waited() - the next waiting message that is due, or whose packet has left
 * @e: the engine
 * @now_ns: now
 * @m: set to the message
 *
 * Return: false if there is none now.
 */
bool engine_waited(struct engine *e, uint64_t now_ns, struct early *m);

/* Judge a message that has waited. */
void engine_again(struct engine *e, const struct early *m, uint64_t now_ns, struct verdict *v);

#endif /* PAQMD_MESSAGE_H */
