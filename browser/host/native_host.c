// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-native-host: between the browser's extension and paqmd. The browser starts it and speaks
 * native messaging: on standard input and output, JSON behind its length (32 bits, host order).
 *
 * One thread that sleeps until the browser or paqmd has something; it ends with standard input.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "browser/host/own.h"
#include "browser/host/request.h"
#include "libpaqmclient/paqmclient.h"

#define PROTOCOL 1  /* of these messages; grows by members and words, docs/browser.md */
#define FLOWS 64    /* that a browser may follow at a time */
#define FLOOR 64000 /* bit/s: sound, and a picture now and then */
#define CEILING 1000000000ULL

struct host {
	struct paqm_client *client;
	struct {
		uint32_t id; /* the extension's; 0: free */
		int flow;    /* the library's */
	} flow[FLOWS];
	bool connected, told;
	uint8_t *in; /* one message and its length */
	size_t have;
};

/* Return: 0, or -1 if the browser has gone. Takes the reference. */
static int say(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);
	uint32_t len = text ? (uint32_t)strlen(text) : 0;
	int bad = !text || fwrite(&len, sizeof(len), 1, stdout) != 1 ||
		  fwrite(text, 1, len, stdout) != len || fflush(stdout);

	free(text);
	json_decref(o);
	return bad ? -1 : 0;
}

/* @kept: it is asked for again, and removed by the extension only */
static int say_refusal(uint32_t flow, const char *reason, const char *text, int kept)
{
	return say(json_pack("{s:s, s:I, s:s, s:s, s:b}", "event", "refused", "flow",
			     (json_int_t)flow, "reason", reason, "text", text, "kept", kept));
}

static int say_refused(uint32_t flow, const char *reason, const char *text)
{
	return say_refusal(flow, reason, text, 0);
}

static int slot_of(const struct host *h, uint32_t id)
{
	int i;

	for (i = 0; i < FLOWS && h->flow[i].id != id; i++)
		;
	return i < FLOWS ? i : -1;
}

/* The last of several refusals of the library; both ends judge by paqm_ipc_fault(). */
static const char *reason_of(int error)
{
	switch (error) {
	case EEXIST:
		return "taken";
	case EAFNOSUPPORT:
		return "source";
	case ENOSPC:
	case EDQUOT:
	case ENOMEM:
		return "full";
	}
	return "paqmd";
}

static const char *text_of(int error)
{
	switch (error) {
	case EEXIST:
		return "another program follows these packets";
	case EAFNOSUPPORT:
		return "source: expected an address of the destination's version";
	case ENOSPC:
		return "paqmd has no room for another flow";
	case EDQUOT:
		return "paqmd has no room for another flow of this user";
	}
	return strerror(error);
}

static int do_add(struct host *h, const struct native_request *r)
{
	int slot = slot_of(h, 0), n;
	char text[160];

	if (slot_of(h, r->flow) >= 0)
		return say_refused(r->flow, "flow", "flow: this number is in use");
	if (slot < 0) {
		snprintf(text, sizeof(text), "a browser may follow %d flows at a time", FLOWS);
		return say_refused(r->flow, "full", text);
	}
	if (*r->source && !own_address(r->source)) {
		snprintf(text, sizeof(text), "source: no interface of this host has %s", r->source);
		return say_refused(r->flow, "source", text);
	}
	if (!own_socket(r->source, r->source_port, getuid())) {
		snprintf(text, sizeof(text),
			 "source_port: no UDP socket of this user sends from %s%sport %u",
			 r->source, *r->source ? ", " : "", r->source_port);
		return say_refused(r->flow, "source_port", text);
	}
	n = paqm_client_add(h->client, r->source, r->source_port, r->destination,
			    r->destination_port, r->ssrc, FLOOR, CEILING);
	if (n < 0)
		return say_refused(r->flow, reason_of(-n), text_of(-n));
	h->flow[slot].id = r->flow;
	h->flow[slot].flow = n;
	return 0;
}

/* Return: 0, or -1 if the browser has gone. */
static int do_message(struct host *h, const char *text, size_t len)
{
	struct native_request r;
	struct native_refusal no;
	int slot;

	if (native_request_parse(text, len, &r, &no))
		return say_refused(r.flow, no.reason, no.text);
	if (r.op == NATIVE_ADD)
		return do_add(h, &r);
	slot = slot_of(h, r.flow);
	if (slot < 0)
		return say_refused(r.flow, "flow", "flow: no flow has this number");
	if (r.op == NATIVE_SENT) {
		/* for paqmctl; lost if paqmd is slow */
		paqm_client_status(h->client, h->flow[slot].flow, r.bps, 0, 0);
		return 0;
	}
	paqm_client_remove(h->client, h->flow[slot].flow);
	h->flow[slot].id = 0;
	return 0;
}

/* Take what the browser has sent. Return: 1 go on, 0 it has gone, -1 what it sends is no message.
 */
static int hear(struct host *h)
{
	ssize_t n = read(STDIN_FILENO, h->in + h->have,
			 sizeof(uint32_t) + NATIVE_MESSAGE_MAX - h->have);
	size_t at = 0;
	uint32_t len;

	if (n < 0 && errno == EINTR)
		return 1;
	if (n <= 0)
		return 0;
	h->have += (size_t)n;
	while (h->have - at >= sizeof(len)) {
		memcpy(&len, h->in + at, sizeof(len));
		if (len > NATIVE_MESSAGE_MAX) {
			say_refused(0, "length",
				    "a message may have at most 1 MiB: the connection ends");
			return -1;
		}
		if (h->have - at - sizeof(len) < len)
			break;
		if (do_message(h, (const char *)h->in + at + sizeof(len), len))
			return 0;
		at += sizeof(len) + len;
	}
	h->have -= at;
	memmove(h->in, h->in + at, h->have);
	return 1;
}

static const char *cause_of(const struct paqm_client_advice *a)
{
	static const char *const name[] = {
		[PAQM_CLIENT_NONE] = "none", [PAQM_CLIENT_ERF] = "erf",
		[PAQM_CLIENT_ECF] = "ecf",   [PAQM_CLIENT_EXPIRED] = "expired",
		[PAQM_CLIENT_LOST] = "lost",
	};

	/* a later library may know more */
	return a->cause < (int)(sizeof(name) / sizeof(name[0])) ? name[a->cause] : "other";
}

static int say_advice(const struct host *h, const struct paqm_client_advice *a)
{
	unsigned int said = paqm_client_said(h->client, a->flow);
	uint32_t id = 0;
	int i;

	for (i = 0; i < FLOWS; i++)
		if (h->flow[i].id && h->flow[i].flow == a->flow)
			id = h->flow[i].id;
	if (!id)
		return 0;
	if (a->cause == PAQM_CLIENT_REFUSED)
		return say_refusal(id, reason_of(a->error), text_of(a->error), 1);
	return say(json_pack("{s:s, s:I, s:s, s:I, s:s, s:f, s:i, s:i, s:b, s:b}", "event",
			     "advice", "flow", (json_int_t)id, "cause", cause_of(a), "rate_bps",
			     (json_int_t)a->rate_bps, "router", a->router, "qdelay_ms",
			     (double)a->qdelay_ms, "period_ms", (int)a->period_ms, "routers",
			     (int)a->routers, "overload", !!(said & PAQM_CLIENT_SAID_OVERLOAD),
			     "policed", !!(said & PAQM_CLIENT_SAID_POLICED)));
}

/* Take what paqmd has sent. Return: 0, or -1 if the browser has gone. */
static int hear_paqmd(struct host *h)
{
	struct paqm_client_advice a;
	const char *trouble;

	while (paqm_client_next(h->client, &a))
		if (say_advice(h, &a))
			return -1;
	trouble = paqm_client_trouble(h->client);
	if (h->told && h->connected == !trouble)
		return 0;
	h->told = true;
	h->connected = !trouble;
	return say(json_pack("{s:s, s:b, s:s, s:s}", "event", "paqmd", "connected", !trouble,
			     "text", trouble ? trouble : "", "socket",
			     paqm_client_path(h->client)));
}

static int run(struct host *h)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
			      {.fd = paqm_client_fd(h->client), .events = POLLIN}};
	int more = 1;

	if (say(json_pack("{s:s, s:s, s:i, s:i}", "event", "hello", "version", PAQM_VERSION,
			  "protocol", PROTOCOL, "flows", FLOWS)))
		return 1;
	while (more > 0) {
		if (hear_paqmd(h))
			return 0;
		if (poll(p, 2, -1) > 0 && p[0].revents)
			more = hear(h);
	}
	return more ? 1 : 0;
}

static void usage(FILE *f)
{
	fprintf(f, "Usage: paqm-native-host [MANIFEST] [EXTENSION]\n"
		   "Browsers start it; see paqm-native-host(1).\n"
		   "  -h, --help     this\n"
		   "  -V, --version  the version\n"
		   "Environment: PAQM_SOCKET  paqmd's socket (/run/paqmd/client.sock)\n");
}

int main(int argc, char **argv)
{
	static struct host h;
	int status;

	if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		usage(stdout);
		return 0;
	}
	if (argc > 1 && (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version"))) {
		puts("paqm-native-host " PAQM_VERSION);
		return 0;
	}
	if (isatty(STDIN_FILENO)) {
		fprintf(stderr, "paqm-native-host: standard input is a terminal, not a browser\n");
		usage(stderr);
		return 2;
	}
	h.client = paqm_client_open(NULL);
	h.in = malloc(sizeof(uint32_t) + NATIVE_MESSAGE_MAX);
	if (!h.client || !h.in) {
		fprintf(stderr, "paqm-native-host: %s\n", strerror(errno));
		return 1;
	}
	status = run(&h);
	paqm_client_close(h.client);
	free(h.in);
	return status;
}
