// SPDX-License-Identifier: GPL-2.0
/* Fuzz target: text of a keys file, then a message that is checked against its keys. */
#include <stdlib.h>
#include <string.h>

#include "feedback-daemon/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t payload[PAQM_QUOTE_UDP];
	static struct keyring ring;
	struct paqm_msg m = {.flags = PAQM_F_AUTH};
	uint8_t bytes[PAQM_TAG_BYTES];
	const char *error;
	unsigned int line, i;

	error = keys_parse((const char *)data, size, &ring, &line);
	if (ring.n > KEYS_MAX || !line || (error && !*error))
		abort();
	if (error)
		return 0;
	for (i = 0; i < ring.n; i++) {
		const struct key *k = &ring.key[i];

		if (!k->id || k->any == !!k->router)
			abort();
		m.router_id = k->router ? k->router : 1;
		m.key_id = k->id;
		m.tag = paqm_siphash24(k->bytes, bytes,
				       paqm_tag_bytes(&m, payload, sizeof(payload), bytes));
		/* a key for all does not count for router 1 if that has its own */
		if (!k->any && keys_check(&ring, &m, payload, sizeof(payload)) != KEYS_VALID)
			abort();
		m.flags = 0;
		if (keys_check(&ring, &m, payload, sizeof(payload)) != KEYS_MISSING)
			abort();
		m.flags = PAQM_F_AUTH;
	}
	m.router_id = 2;
	m.key_id = 0;
	if (keys_check(&ring, &m, payload, sizeof(payload)) == KEYS_VALID)
		abort();
	return 0;
}
