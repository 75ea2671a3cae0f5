// SPDX-License-Identifier: GPL-2.0
/* The flow table: registration, search, what clients are sent, memory; see flows.h. */
#include "feedback-daemon/judge/flows.h"

#include <errno.h>
#include <string.h>

/* How often to look for rings that are larger than needed. */
#define TRIM_NS NS_PER_S

_Static_assert(ENGINE_DIGESTS > RING_MIN * ENGINE_FLOWS, "there is something to share");
_Static_assert(PAQM_IPC_RATE_MAX == PAQM_VALUE_MAX, "no rate is beyond what a message can say");

static uint32_t hash(const struct engine *e, const uint8_t *p, uint32_t len)
{
	return (uint32_t)paqm_siphash24(e->key, p, len) & (ENGINE_HASH - 1);
}

/* Without the source, which may be open. */
static uint32_t hash_tuple(const struct engine *e, const struct flow_key *k)
{
	uint8_t b[20];

	memcpy(b, k->daddr.b, 16);
	paqm_put16(b + 16, k->sport);
	paqm_put16(b + 18, k->dport);
	return hash(e, b, sizeof(b));
}

static uint32_t hash_cookie(const struct engine *e, uint64_t owner, uint64_t cookie)
{
	uint8_t b[16];

	paqm_put64(b, owner);
	paqm_put64(b + 8, cookie);
	return hash(e, b, sizeof(b));
}

/* The first flow of the chain from @i on whose packets overlap those of @k: number + 1; 0: none. */
static uint32_t overlap(const struct engine *e, const struct flow_key *k, uint32_t i)
{
	for (; i; i = e->keys[i - 1].by_tuple) {
		const struct flow_key *o = &e->keys[i - 1];

		if (o->sport == k->sport && o->dport == k->dport &&
		    addr_equal(&o->daddr, &k->daddr) &&
		    (addr_equal(&o->saddr, &k->saddr) || addr_is_any(&o->saddr) ||
		     addr_is_any(&k->saddr)))
			break;
	}
	return i;
}

struct flow *flow_of(struct engine *e, const struct flow_key *k)
{
	uint32_t i = overlap(e, k, e->tuple_index[hash_tuple(e, k)]);

	if (!i && !addr_is_v4(&k->daddr)) {
		/* Before this host's translator: RFC 6052, section 2.2, prefixes of 96 bits. */
		struct flow_key v4 = {
			.daddr = addr_v4(k->daddr.b + 12), .sport = k->sport, .dport = k->dport};

		i = overlap(e, &v4, e->tuple_index[hash_tuple(e, &v4)]);
	}
	return i ? &e->flows[i - 1] : NULL;
}

struct flow *engine_flow(struct engine *e, uint64_t owner, uint64_t cookie)
{
	uint32_t i;

	for (i = e->cookie_index[hash_cookie(e, owner, cookie)]; i; i = e->keys[i - 1].by_cookie)
		if (e->flows[i - 1].owner == owner && e->flows[i - 1].cookie == cookie)
			return &e->flows[i - 1];
	return NULL;
}

/* Unlink flow number @i from the list that begins at @p. */
static void unlink_tuple(struct engine *e, uint32_t *p, uint32_t i)
{
	while (*p != i + 1)
		p = &e->keys[*p - 1].by_tuple;
	*p = e->keys[i].by_tuple;
}

static void unlink_cookie(struct engine *e, uint32_t *p, uint32_t i)
{
	while (*p != i + 1)
		p = &e->keys[*p - 1].by_cookie;
	*p = e->keys[i].by_cookie;
}

/* Set the key of flow number @i to @k, replacing the one it has, if any. */
static void set_key(struct engine *e, uint32_t i, const struct flow_key *k)
{
	struct flow_key *own = &e->keys[i];
	const struct flow *f = &e->flows[i];
	uint32_t *head;

	if (own->used)
		unlink_tuple(e, &e->tuple_index[hash_tuple(e, own)], i);
	own->saddr = k->saddr;
	own->daddr = k->daddr;
	own->sport = k->sport;
	own->dport = k->dport;
	head = &e->tuple_index[hash_tuple(e, own)];
	own->by_tuple = *head;
	*head = i + 1;
	if (own->used)
		return;
	own->used = true;
	head = &e->cookie_index[hash_cookie(e, f->owner, f->cookie)];
	own->by_cookie = *head;
	*head = i + 1;
}

bool flow_record(struct flow *f)
{
	struct paqm_ipc_rate r;
	const struct allow *min;
	unsigned int active;

	memset(&r, 0, sizeof(r));
	r.hdr.magic = PAQM_IPC_MAGIC;
	r.hdr.version = PAQM_IPC_VERSION;
	r.hdr.kind = PAQM_IPC_RATE;
	r.hdr.len = sizeof(r);
	r.cookie = f->cookie;
	r.rate_bps = allow_min(&f->allow, f->floor_bps, f->ceil_bps, &min, &active);
	if (min) {
		r.router_id = min->msg.router_id;
		memcpy(r.router, min->addr.b, sizeof(r.router));
		r.mono_ns = min->mono_ns;
		r.value = min->msg.ecf;
		r.seq = min->msg.seq;
		r.period_ms = min->msg.period_ms;
		r.qdelay_100us = min->msg.qdelay_100us;
		r.flags = min->msg.flags;
		r.routers = (uint16_t)active;
		r.cause = min->use == ALLOW_USE_ERF ? PAQM_CAUSE_ERF : PAQM_CAUSE_ECF;
	} else {
		r.cause = f->allow.spoken ? PAQM_CAUSE_EXPIRED : PAQM_CAUSE_NONE;
	}
	if (!memcmp(&r, &f->rate, sizeof(r)))
		return false;
	f->rate = r;
	return true;
}

const struct user *engine_user(const struct engine *e, uint32_t uid)
{
	size_t i;

	for (i = 0; i < ENGINE_USERS; i++)
		if (e->users[i].flows && e->users[i].uid == uid)
			return &e->users[i];
	return NULL;
}

/* The user's slot, or a free one. */
static struct user *user_of(struct engine *e, uint32_t uid)
{
	struct user *u = (struct user *)engine_user(e, uid);
	size_t i;

	for (i = 0; !u && i < ENGINE_USERS; i++)
		if (!e->users[i].flows)
			u = &e->users[i];
	return u;
}

void flow_account(struct engine *e, const struct flow *f, uint32_t cap_before, uint64_t now_ns)
{
	e->users[f->user].digests += f->ring.cap - cap_before;
	e->digests += f->ring.cap - cap_before;
	if (f->ring.cap > RING_MIN && e->trim_ns == UINT64_MAX)
		e->trim_ns = now_ns + TRIM_NS;
}

/* A slot for a new flow. Return: 0 or an errno. */
static int new_flow(struct engine *e, uint64_t owner, uint32_t uid, uint64_t cookie,
		    struct flow **flow)
{
	struct user *u = user_of(e, uid);
	struct flow *f;
	uint32_t i;

	if (!u || e->used == ENGINE_FLOWS)
		return ENOSPC;
	if (!share_is_whole(uid) && !share_has(u->flows, 1, e->used, ENGINE_FLOWS))
		return EDQUOT;
	for (i = 1; e->keys[(e->last + i) % ENGINE_FLOWS].used; i++)
		;
	i = (e->last + i) % ENGINE_FLOWS;
	f = &e->flows[i];
	memset(f, 0, sizeof(*f));
	if (ring_init(&f->ring, RING_CAP))
		return ENOMEM;
	if (!u->flows)
		*u = (struct user){.uid = uid};
	u->flows++;
	e->used++;
	e->last = i;
	e->due_ns[i] = UINT64_MAX;
	f->user = (uint32_t)(u - e->users);
	f->serial = ++e->serial;
	f->owner = owner;
	f->cookie = cookie;
	flow_account(e, f, 0, 0);
	*flow = f;
	return 0;
}

static int take(struct engine *e, uint64_t owner, uint32_t uid, const struct paqm_ipc_register *reg,
		struct flow **flow)
{
	struct flow_key k = {
		.saddr = addr_v6(reg->saddr),
		.daddr = addr_v6(reg->daddr),
		.sport = reg->sport,
		.dport = reg->dport,
	};
	struct flow *f;
	uint32_t i;
	int err = paqm_ipc_fault(reg);

	if (err)
		return err;
	f = engine_flow(e, owner, reg->cookie);
	/* Only the flow itself may overlap these packets. */
	i = overlap(e, &k, e->tuple_index[hash_tuple(e, &k)]);
	if (f != (i ? &e->flows[i - 1] : NULL) || (i && overlap(e, &k, e->keys[i - 1].by_tuple)))
		return EEXIST;
	err = f ? 0 : new_flow(e, owner, uid, reg->cookie, &f);
	if (err)
		return err;
	set_key(e, (uint32_t)(f - e->flows), &k);
	f->ssrc = reg->ssrc;
	f->floor_bps = reg->floor_bps;
	f->ceil_bps = reg->ceil_bps;
	f->gop_us = reg->gop_us;
	f->answer_us = reg->answer_us;
	flow_record(f);
	*flow = f;
	return 0;
}

static enum not_taken not_taken(int err)
{
	switch (err) {
	case EEXIST:
		return NOT_TAKEN_TAKEN;
	case EDQUOT:
		return NOT_TAKEN_USER_FULL;
	case ENOSPC:
		return NOT_TAKEN_ALL_FULL;
	case ENOMEM:
		return NOT_TAKEN_NO_MEMORY;
	}
	return NOT_TAKEN_IMPOSSIBLE;
}

int engine_register(struct engine *e, uint64_t owner, uint32_t uid,
		    const struct paqm_ipc_register *reg, struct flow **flow)
{
	int err = take(e, owner, uid, reg, flow);

	if (err)
		e->not_taken[not_taken(err)]++;
	return err;
}

void engine_unregister(struct engine *e, struct flow *f)
{
	uint32_t i = (uint32_t)(f - e->flows), cap = f->ring.cap;

	unlink_tuple(e, &e->tuple_index[hash_tuple(e, &e->keys[i])], i);
	unlink_cookie(e, &e->cookie_index[hash_cookie(e, f->owner, f->cookie)], i);
	e->keys[i] = (struct flow_key){0};
	ring_free(&f->ring);
	flow_account(e, f, cap, 0);
	e->users[f->user].flows--;
	e->used--;
}

void flows_trim(struct engine *e, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < ENGINE_FLOWS; i++) {
		struct flow *f = &e->flows[i];
		uint32_t cap;

		if (!e->keys[i].used)
			continue;
		cap = f->ring.cap;
		ring_trim(&f->ring, now_ns, e->params.digest_life_ns);
		flow_account(e, f, cap, now_ns);
	}
	e->trim_ns = e->digests > e->used * RING_MIN ? now_ns + TRIM_NS : UINT64_MAX;
}
