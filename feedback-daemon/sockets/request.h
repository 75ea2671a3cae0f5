/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Control requests and the JSON views of the engine. One request is one line
 * with one JSON object, {"cmd": "show"}; the answer is one line as well. If there
 * are more flows than it holds, it has a "next", which the next request gives as
 * "from". Pure: no sockets, no clocks.
 */
#ifndef PAQMD_REQUEST_H
#define PAQMD_REQUEST_H

#include <jansson.h>

#include "feedback-daemon/capture/filter.h"
#include "feedback-daemon/conf.h"
#include "feedback-daemon/judge/engine.h"

#define REQUEST_FLOWS 256	       /* in one answer */
#define REQUEST_PACKET_MAX FILTER_SNAP /* bytes of a captured message: all that is judged */

struct request_iface {
	char name[CONF_IFACE_LEN];
	bool up;
	uint64_t received; /* packets that came by it */
};

/* What the kernel counts of a capture. */
struct request_count {
	uint64_t received; /* passed the filter */
	uint64_t dropped;  /* of these, lost because we were too slow */
};

/* A user that media senders run as. */
struct request_user {
	uint32_t uid;
	unsigned int clients;
};

/* What the answers need beside the engine. */
struct request_env {
	uint64_t now_ns; /* of the engine's clock */
	uint64_t start_ns;
	unsigned int clients;
	uint64_t bad_records;
	uint64_t peers_refused;
	uint64_t accept_failed;
	uint64_t link_foreign; /* interface notifications not from the kernel */
	struct clients_full senders_full, controls_full;
	unsigned int users;
	struct request_user user[ENGINE_USERS];
	unsigned int ifaces;
	struct request_iface iface[CONF_IFACES];
	struct request_count media, messages;
};

/* What a request asks of the server. */
enum request_act {
	REQUEST_NOTHING,
	REQUEST_WATCH,	 /* send events from now on */
	REQUEST_CAPTURE, /* send events with the messages themselves */
	REQUEST_RELOAD,	 /* reload the configuration and report the result */
};

/**
 * request_answer() - answer one line of a control client
 * @e: the engine
 * @env: the rest
 * @line: request, not terminated
 * @len: its length
 * @act: set to what the server has to do beside answering
 *
 * Return: the answer, NULL only without memory.
 */
json_t *request_answer(const struct engine *e, const struct request_env *env, const char *line,
		       size_t len, enum request_act *act);

/* The answer to a reload; @why is NULL if it went well. */
json_t *request_reloaded(const char *why);

/* The answer to a client without the right to capture and reload. */
json_t *request_forbidden(void);

/* How many messages were refused, by reason. */
json_t *request_refused(const struct engine *e);

/* Events of a watch. @t_ns is CLOCK_REALTIME. */
json_t *request_event_verdict(const struct engine *e, const struct verdict *v, uint64_t t_ns);
json_t *request_event_packet(const struct verdict *v, const uint8_t *ip, uint32_t len,
			     uint64_t t_ns);
json_t *request_event_flow(const struct engine *e, const char *event, const struct flow *f,
			   uint64_t t_ns);

#endif /* PAQMD_REQUEST_H */
