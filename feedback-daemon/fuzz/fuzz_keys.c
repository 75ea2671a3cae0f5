// SPDX-License-Identifier: GPL-2.0
/* Fuzz target: text of a keys file, then a message that is checked against its keys. */
#include <stdlib.h>
#include <string.h>

#include "feedback-daemon/judge/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t payload[PAQM_PROOF_OTHER], dst[4] = {10, 0, 2, 2};
static const struct addr host = {{[10] = 0xFF, [11] = 0xFF, 10, 0, 1, 2}};
static const struct paqm_quote quote = {
	.version = 4,
	.dst = dst,
	.dport = 5006,
	.payload = payload,
	.payload_len = sizeof(payload),
};

/* Check @m, tagged with @k as its version has it; without one if @k is NULL. */
static enum keys_verdict check(const struct keyring *ring, struct paqm_msg m, const struct key *k)
{
	uint8_t object[PAQM_OBJ_MAX], bytes[PAQM_TAG_BYTES], own[PAQM_SIPHASH_KEY];

	if (k && m.version != 1 && !k->host)
		keys_derive(k->bytes, &host, own);
	else if (k)
		memcpy(own, k->bytes, sizeof(own));
	m.flags = k ? PAQM_F_AUTH : 0;
	m.object = object;
	if (m.version == 1) {
		paqm1_object_encode(object, &m);
		m.object_len = PAQM1_OBJ_LEN;
		if (k)
			m.tag = paqm_siphash24(own, bytes, paqm1_tag_bytes(object, &quote, bytes));
	} else {
		m.object_len = paqm_object_encode(object, &m);
		if (k)
			m.tag = paqm_siphash24(own, bytes,
					       paqm_tag_bytes(object, m.object_len, &quote, bytes));
	}
	return keys_check(ring, &m, &quote, &host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct key none = {.id = 0};
	static struct keyring ring;
	struct paqm_msg m = {0};
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
		for (m.version = 1; m.version <= PAQM_MSG_VERSION; m.version++) {
			/* a key for all does not count for router 1 if that has its own; a host's
			 * key says nothing about version 1
			 */
			bool proves = !k->host || m.version != 1;

			if (!k->any && (check(&ring, m, k) == KEYS_VALID) != proves)
				abort();
			if (check(&ring, m, NULL) != KEYS_MISSING)
				abort();
		}
	}
	m.version = PAQM_MSG_VERSION;
	m.router_id = 2;
	m.key_id = 0;
	if (check(&ring, m, &none) == KEYS_VALID)
		abort();
	return 0;
}
