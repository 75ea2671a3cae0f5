/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Control requests and the JSON views of the engine. One request is one line
 * with one JSON object, {"cmd": "show"}; the answer is one line as well. Pure:
 * no sockets, no clocks.
 */
#ifndef PAQMD_REQUEST_H
#define PAQMD_REQUEST_H

#include <jansson.h>

#include "engine.h"

#define REQUEST_IFACES 8

struct request_iface {
	char name[32];
	bool up;
	uint64_t received; /* by the kernel filter */
	uint64_t dropped;  /* lost because we were too slow */
};

/* What the answers need beside the engine. */
struct request_env {
	uint64_t now_ns; /* monotonic */
	uint64_t start_ns;
	unsigned int clients;
	uint64_t bad_records;
	uint64_t peers_refused;
	unsigned int ifaces;
	struct request_iface iface[REQUEST_IFACES];
};

/**
 * request_answer() - answer one line of a control client
 * @e: the engine
 * @env: the rest
 * @line: request, not terminated
 * @len: its length
 * @watch: set to true if the client asks for events from now on
 *
 * Return: the answer, NULL only without memory.
 */
json_t *request_answer(const struct engine *e, const struct request_env *env, const char *line,
		       size_t len, bool *watch);

/* Events of a watch. @t_ns is CLOCK_REALTIME. */
json_t *request_event_verdict(const struct engine *e, const struct verdict *v, uint64_t t_ns);
json_t *request_event_flow(const struct engine *e, const char *event, const struct flow *f,
			   uint64_t t_ns);

#endif /* PAQMD_REQUEST_H */
