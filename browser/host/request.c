// SPDX-License-Identifier: GPL-2.0
/* Parser of the extension's messages; see request.h. */
#include "browser/host/request.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int refuse(struct native_refusal *no, const char *reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct native_refusal *no, const char *reason, const char *format, ...)
{
	va_list args;

	no->reason = reason;
	va_start(args, format);
	vsnprintf(no->text, sizeof(no->text), format, args);
	va_end(args);
	return -1;
}

/* A member that is a whole number from @least to @most. Return: 0, or -1 if refused. */
static int number(const json_t *o, const char *name, json_int_t least, json_int_t most,
		  uint64_t *to, struct native_refusal *no)
{
	const json_t *v = json_object_get(o, name);

	if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most)
		return refuse(no, name, "%s: expected a whole number from %lld to %lld", name,
			      (long long)least, (long long)most);
	*to = (uint64_t)json_integer_value(v);
	return 0;
}

static int port(const json_t *o, const char *name, uint16_t *to, struct native_refusal *no)
{
	uint64_t value;

	if (number(o, name, 1, 65535, &value, no))
		return -1;
	*to = (uint16_t)value;
	return 0;
}

/* No packet to or from such an address has one sender and one receiver. */
static int is_unicast4(const uint8_t a[4])
{
	return a[0] && a[0] < 224;
}

static int is_unicast6(const uint8_t a[16])
{
	static const uint8_t none[16], mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(a, mapped, sizeof(mapped)))
		return is_unicast4(a + 12);
	return memcmp(a, none, sizeof(none)) && a[0] != 0xff;
}

static int address(const json_t *o, const char *name, char to[PAQM_CLIENT_ADDR],
		   struct native_refusal *no)
{
	const json_t *v = json_object_get(o, name);
	const char *text = json_string_value(v);
	uint8_t a[16];

	/* a zero inside ends the text for inet_pton(), but not for whoever wrote it */
	if (!text || json_string_length(v) >= PAQM_CLIENT_ADDR ||
	    strlen(text) != json_string_length(v) ||
	    !(inet_pton(AF_INET, text, a) == 1
		      ? is_unicast4(a)
		      : inet_pton(AF_INET6, text, a) == 1 && is_unicast6(a)))
		return refuse(no, name, "%s: expected a unicast address, IPv4 or IPv6", name);
	memcpy(to, text, json_string_length(v) + 1);
	return 0;
}

static int add(const json_t *o, struct native_request *r, struct native_refusal *no)
{
	uint64_t ssrc = 0;

	if (json_object_get(o, "source") && address(o, "source", r->source, no))
		return -1;
	if (port(o, "source_port", &r->source_port, no) ||
	    address(o, "destination", r->destination, no) ||
	    port(o, "destination_port", &r->destination_port, no))
		return -1;
	if (json_object_get(o, "ssrc") && number(o, "ssrc", 0, UINT32_MAX, &ssrc, no))
		return -1;
	r->ssrc = (uint32_t)ssrc;
	return 0;
}

static int take(const json_t *o, struct native_request *r, struct native_refusal *no)
{
	const char *op = json_string_value(json_object_get(o, "op"));
	uint64_t flow;

	if (!json_is_object(o))
		return refuse(no, "json", "expected an object");
	if (number(o, "flow", 1, NATIVE_FLOW_MAX, &flow, no))
		return -1;
	r->flow = (uint32_t)flow;
	if (op && !strcmp(op, "add")) {
		r->op = NATIVE_ADD;
		return add(o, r, no);
	}
	if (op && !strcmp(op, "sent")) {
		r->op = NATIVE_SENT;
		return number(o, "bps", 0, 1000000000000LL, &r->bps, no);
	}
	r->op = NATIVE_REMOVE;
	return op && !strcmp(op, "remove")
		       ? 0
		       : refuse(no, "op", "op: expected \"add\", \"remove\" or \"sent\"");
}

int native_request_parse(const char *text, size_t len, struct native_request *r,
			 struct native_refusal *no)
{
	json_error_t err;
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &err);
	int status;

	memset(r, 0, sizeof(*r));
	if (!o)
		return refuse(no, "json", "byte %d: %.100s", err.position, err.text);
	status = take(o, r, no);
	json_decref(o);
	return status;
}
