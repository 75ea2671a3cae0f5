// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: messages of the extension, which come from pages in the end. What is taken must be
 * within its limits, what is refused must have a reason that can be told.
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "browser/host/own.h"
#include "browser/host/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_address(const char *text)
{
	uint8_t a[16];

	return inet_pton(AF_INET, text, a) == 1 || inet_pton(AF_INET6, text, a) == 1;
}

static void refused(const struct native_refusal *no)
{
	json_t *o = json_pack("{s:s, s:s}", "reason", no->reason, "text", no->text);

	/* told as JSON, whatever was in it */
	if (!*no->reason || !*no->text || !o)
		abort();
	json_decref(o);
}

static void taken(const struct native_request *r)
{
	if (!r->flow || r->flow > NATIVE_FLOW_MAX)
		abort();
	if (r->op != NATIVE_ADD)
		return;
	if (!r->source_port || !r->destination_port || !is_address(r->destination) ||
	    (*r->source && !is_address(r->source)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct native_refusal no = {0};
	struct native_request r;
	char line[512];

	if (native_request_parse((const char *)data, size, &r, &no))
		refused(&no);
	else
		taken(&r);
	/* a line of the kernel's, as long as it may be */
	if (size < sizeof(line)) {
		memcpy(line, data, size);
		line[size] = 0;
		own_line(line, "10.0.0.1", 5004, 0);
	}
	return 0;
}
