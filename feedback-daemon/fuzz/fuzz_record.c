// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: records of clients. The input is a sequence of records, each
 * behind one byte that gives its length; the first record is the whole input.
 */
#include <stdlib.h>

#include "feedback-daemon/sockets/record.h"
#include "feedback-daemon/tests/packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct engine eng;

static void one(const uint8_t *data, size_t size)
{
	struct flow *f = NULL;
	union record r;

	if (record_parse(data, size, &r))
		return;
	switch (r.hdr.kind) {
	case PAQM_IPC_REGISTER:
		if (!engine_register(&eng, 1, 0, &r.reg, &f) &&
		    (engine_flow(&eng, 1, r.reg.cookie) != f || f->floor_bps > f->ceil_bps))
			abort();
		break;
	case PAQM_IPC_UNREGISTER:
		f = engine_flow(&eng, 1, r.unreg.cookie);
		if (f)
			engine_unregister(&eng, f);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[PAQM_SIPHASH_KEY] = {1};
	size_t len;

	engine_init(&eng, &engine_defaults, key);
	one(data, size);
	while (size) {
		len = data[0] < size - 1 ? data[0] : size - 1;
		one(data + 1, len);
		data += 1 + len;
		size -= 1 + len;
	}
	engine_free(&eng);
	return 0;
}
