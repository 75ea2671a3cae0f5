// SPDX-License-Identifier: GPL-2.0
/* The judging part as a whole: defaults, names, begin and end, expiry; see engine.h. */
#include "feedback-daemon/judge/engine.h"

#include <string.h>

/* A router sends each flow one message per round: four per second, twenty while much changes. All
 * routers together may tell the whole flow table, with some margin.
 */
const struct engine_params engine_defaults = {
	.use = ALLOW_USE_ERF,
	.digest_life_ns = 4 * NS_PER_S,
	.early_ns = NS_PER_S / 4,
	.router = {.per_s = 1000, .burst = 500},
	.flow = {.per_s = 20, .burst = 2},
	.global = {.per_s = 50000, .burst = 20000},
};

static const char *const refuse_names[REFUSE_MAX] = {
#define X(name, text) [REFUSE_##name] = text,
	REFUSE_REASONS(X)
#undef X
};

static const char *const not_taken_names[NOT_TAKEN_MAX] = {
#define X(name, text) [NOT_TAKEN_##name] = text,
	NOT_TAKEN_REASONS(X)
#undef X
};

static const char *const forgot_names[FORGOT_MAX] = {
#define X(name, text) [FORGOT_##name] = text,
	FORGOT_REASONS(X)
#undef X
};

const char *refuse_name(enum refuse r)
{
	return (unsigned int)r < REFUSE_MAX ? refuse_names[r] : "unknown";
}

const char *not_taken_name(enum not_taken r)
{
	return not_taken_names[r];
}

const char *forgot_name(enum forgot r)
{
	return forgot_names[r];
}

void engine_init(struct engine *e, const struct engine_params *p,
		 const uint8_t key[PAQM_SIPHASH_KEY])
{
	_Static_assert(!(ENGINE_HASH & (ENGINE_HASH - 1)), "a power of two");
	memset(e, 0, offsetof(struct engine, flows));
	e->next_ns = UINT64_MAX;
	e->early_ns = UINT64_MAX;
	e->trim_ns = UINT64_MAX;
	e->last = ENGINE_FLOWS - 1;
	e->params = *p;
	memcpy(e->key, key, PAQM_SIPHASH_KEY);
}

void engine_free(struct engine *e)
{
	size_t i;

	for (i = 0; i < ENGINE_FLOWS; i++)
		if (e->keys[i].used)
			engine_unregister(e, &e->flows[i]);
	keys_wipe(&e->keyring);
}

void engine_set_keys(struct engine *e, const struct keyring *ring)
{
	keys_wipe(&e->keyring);
	if (ring)
		e->keyring = *ring;
}

bool engine_expire(struct engine *e, struct flow *f, uint64_t now_ns)
{
	if (!allow_expire(&f->allow, now_ns, e->params.digest_life_ns))
		return false;
	allow_damp(&f->allow, e->params.use, f->ceil_bps, now_ns);
	return flow_record(f);
}

void engine_expire_all(struct engine *e, uint64_t now_ns, void (*told)(void *data, struct flow *f),
		       void *data)
{
	uint64_t next = UINT64_MAX;
	uint32_t i;

	if (now_ns >= e->trim_ns)
		flows_trim(e, now_ns);
	if (now_ns < e->next_ns)
		return;
	for (i = 0; i < ENGINE_FLOWS; i++) {
		struct flow *f = &e->flows[i];

		if (!e->keys[i].used)
			continue;
		if (now_ns >= e->due_ns[i]) {
			if (engine_expire(e, f, now_ns))
				told(data, f);
			e->due_ns[i] = allow_next(&f->allow, e->params.digest_life_ns);
		}
		next = paqm_min64(next, e->due_ns[i]);
	}
	e->next_ns = next;
}
