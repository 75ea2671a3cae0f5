/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay of a capture file: the engine judges what the file holds as it would have
 * judged it live, at the times in the file, and prints a line of JSON for each
 * message. The file is untrusted: it may come from anywhere.
 */
#ifndef PAQMD_OFFLINE_H
#define PAQMD_OFFLINE_H

#include <stdio.h>

#include "feedback-daemon/sockets/request.h"

#define OFFLINE_FLOW_MAX 256 /* characters of a flow's description */

/**
 * offline_flow() - parse the description of a flow
 * @text: "SADDR:PORT DADDR:PORT [ssrc HEX] [floor BIT/S] [ceil BIT/S]"; an IPv6 address
 *        stands in brackets, SADDR may be *; floor is 0 and ceil the most there is unless
 *        they are given
 * @reg: set to the registration, but for its cookie
 *
 * Return: NULL, or what is wrong and what to do.
 */
const char *offline_flow(const char *text, struct paqm_ipc_register *reg);

/**
 * offline_flows() - register the flows of a file
 * @in: a description in each line; # begins a comment
 * @e: the engine
 * @error: set to a text that names the line
 * @size: of @error
 *
 * Return: 0, or -1 with @error.
 */
int offline_flows(FILE *in, struct engine *e, char *error, size_t size);

/* Register one flow. Return: 0, or -1 with @error. */
int offline_add(struct engine *e, const char *text, char *error, size_t size);

struct offline_count {
	uint64_t packets;  /* records of the file */
	uint64_t foreign;  /* neither UDP nor a message, or no IP */
	uint64_t messages; /* given to the engine */
};

/**
 * offline_run() - replay a file
 * @in: the capture, which it closes: a format that libpcap reads (pcap, pcapng), link type
 *      Ethernet, raw IP or "Linux cooked"
 * @e: engine with the flows registered, and keys if wanted
 * @out: one line of JSON for each message and each allowance that expires
 * @c: counters
 * @error: set to a text if the file cannot be read (further)
 * @size: of @error
 *
 * Return: 0, or -1 with @error; what came before the fault has been judged.
 */
int offline_run(FILE *in, struct engine *e, FILE *out, struct offline_count *c, char *error,
		size_t size);

/* The last line: what there was in all. */
void offline_summary(const struct engine *e, const struct offline_count *c, FILE *out);

#endif /* PAQMD_OFFLINE_H */
