/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the extension may ask of paqm-native-host: one JSON object a message. Pages are behind it,
 * so every member is judged here, and what is refused is told with its reason.
 */
#ifndef PAQM_NATIVE_REQUEST_H
#define PAQM_NATIVE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "libpaqmclient/paqmclient.h"

#define NATIVE_MESSAGE_MAX                                                                         \
	(1U << 20) /* bytes; what browsers take from a host, and more than we need */
#define NATIVE_FLOW_MAX 0x7FFFFFFFU /* the extension's own numbers */

enum native_op { NATIVE_ADD, NATIVE_REMOVE, NATIVE_SENT };

/**
 * struct native_request - one message of the extension
 * @op: what it wants
 * @flow: number of the flow, 1 to NATIVE_FLOW_MAX; 0 in a refused one that does not say
 * @source: address that it is sent from, "" if the browser does not tell
 * @destination: address that it is sent to
 * @source_port: UDP port that it is sent from
 * @destination_port: UDP port that it is sent to
 * @ssrc: of its RTP packets; 0: any
 * @bps: sent during the last second, bit/s at the IP level
 */
struct native_request {
	enum native_op op;
	uint32_t flow;
	char source[PAQM_CLIENT_ADDR];
	char destination[PAQM_CLIENT_ADDR];
	uint16_t source_port, destination_port;
	uint32_t ssrc;
	uint64_t bps;
};

/* Why a message is refused: @reason is one of the words of docs/browser.md. */
struct native_refusal {
	const char *reason;
	char text[160];
};

/**
 * native_request_parse() - take one message apart
 * @text: of it, without its length
 * @len: bytes
 * @r: filled in
 * @no: filled in if it is refused; @r->flow then says of which flow, if that was told
 *
 * Members that it does not know are passed over: a later extension may say more.
 * Return: 0, or -1 if it is refused.
 */
int native_request_parse(const char *text, size_t len, struct native_request *r,
			 struct native_refusal *no);

#endif /* PAQM_NATIVE_REQUEST_H */
