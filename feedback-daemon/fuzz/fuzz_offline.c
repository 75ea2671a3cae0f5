// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: replay of a capture file. The input is text with a flow in each line up to
 * the first zero byte, then the file.
 */
#include <stdlib.h>
#include <string.h>

#include "feedback-daemon/capture/offline.h"
#include "feedback-daemon/tests/packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct engine eng;

/* Every line that was written is one JSON object: what cannot be written leaves an empty line. */
static void check_lines(const char *text)
{
	static const char begin[] = "{\"event\":\"";
	const char *end;

	for (; *text; text = end + 1) {
		end = strchr(text, '\n');
		if (!end || strncmp(text, begin, strlen(begin)) || end[-1] != '}')
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[PAQM_SIPHASH_KEY] = {1};
	const uint8_t *end = memchr(data, 0, size);
	size_t lines = end ? (size_t)(end - data) : 0, skip = end ? lines + 1 : 0, len;
	struct offline_count c;
	char error[256], *text = NULL;
	FILE *in, *out;
	unsigned int i;

	engine_init(&eng, &engine_defaults, key);
	if (lines) {
		in = fmemopen((void *)data, lines, "r");
		if (offline_flows(in, &eng, error, sizeof(error)) && !*error)
			abort();
		fclose(in);
	}
	offline_add(&eng, "10.0.1.2:5004 10.0.2.2:5006 floor 10000 ceil 1000000", error,
		    sizeof(error));
	out = open_memstream(&text, &len);
	if (size > skip) {
		in = fmemopen((void *)(data + skip), size - skip, "r");
		if (offline_run(in, &eng, out, &c, error, sizeof(error)) && !*error)
			abort();
		if (c.messages > c.packets || eng.accepted > c.messages)
			abort();
		if (c.messages)
			offline_summary(&eng, &c, out);
	}
	fclose(out);
	check_lines(text);
	free(text);
	for (i = 0; i < ENGINE_FLOWS; i++)
		if (eng.keys[i].used && eng.flows[i].rate.rate_bps > eng.flows[i].ceil_bps)
			abort();
	engine_free(&eng);
	return 0;
}
