// SPDX-License-Identifier: GPL-2.0
/* Flow table, router table and the pipeline of checks; see engine.h. */
#include "engine.h"

#include <errno.h>
#include <string.h>

#define NS_PER_S 1000000000ULL
#define IPPROTO_ICMP_ 1
#define IPPROTO_UDP_ 17

/* A payload shorter than this holds too little that an attacker cannot guess:
 * keep-alives of one or a few constant bytes must not prove anything.
 */
#define PROOF_MIN 20

#define CEIL_MAX 1000000000000ULL /* bit/s, the largest rate of the protocol */

/* A router may be replaced in the full table after this silence. */
#define ROUTER_IDLE_NS (30 * NS_PER_S)

/* Rounds are at least 50 ms apart and address each flow once: 20 messages a
 * second and flow, 256 flows. A single router rarely has more than a few dozen
 * flows of one host.
 */
const struct engine_params engine_defaults = {
	.use = ALLOW_USE_ERF,
	.digest_life_ns = 4 * NS_PER_S,
	.router = {.per_s = 1000, .burst = 500},
	.global = {.per_s = 4000, .burst = 1000},
};

static const char *const refuse_names[REFUSE_MAX] = {
#define X(name, text) [REFUSE_##name] = text,
	REFUSE_REASONS(X)
#undef X
};

_Static_assert((int)REFUSE_MSG_MISMATCH - (int)REFUSE_MSG_SHORT ==
		       (int)PAQM_MSG_MISMATCH - (int)PAQM_MSG_SHORT,
	       "codec errors and refusals correspond");
_Static_assert((int)PAQM_MSG_MISMATCH + 1 == (int)PAQM_MSG_ERR_MAX, "every codec error has a name");

const char *refuse_name(enum refuse r)
{
	return (unsigned int)r < REFUSE_MAX ? refuse_names[r] : "unknown";
}

static void bucket_fill(struct bucket *b, const struct bucket_limit *l, uint64_t now_ns)
{
	uint64_t full = l->burst * (NS_PER_S / l->per_s);

	if (!b->t_ns)
		b->credit_ns = full;
	else if (now_ns > b->t_ns)
		b->credit_ns = paqm_min64(full, b->credit_ns + (now_ns - b->t_ns));
	b->t_ns = paqm_max64(b->t_ns, paqm_max64(now_ns, 1));
}

static bool bucket_has(const struct bucket *b, const struct bucket_limit *l)
{
	return b->credit_ns >= NS_PER_S / l->per_s;
}

static void bucket_take(struct bucket *b, const struct bucket_limit *l)
{
	b->credit_ns -= NS_PER_S / l->per_s;
}

void engine_init(struct engine *e, const struct engine_params *p,
		 const uint8_t key[SIPHASH_KEY_LEN])
{
	memset(e, 0, sizeof(*e));
	e->params = *p;
	memcpy(e->key, key, SIPHASH_KEY_LEN);
}

void engine_free(struct engine *e)
{
	size_t i;

	for (i = 0; i < ENGINE_FLOWS; i++)
		if (e->keys[i].used)
			engine_unregister(e, &e->flows[i]);
}

static bool v4_mapped(const uint8_t a[16], uint32_t *addr)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	*addr = paqm_get32(a + 12);
	return !memcmp(a, prefix, sizeof(prefix));
}

static void v4_map(uint8_t a[16], uint32_t addr)
{
	memset(a, 0, 10);
	a[10] = 0xff;
	a[11] = 0xff;
	paqm_put32(a + 12, addr);
}

static struct flow *flow_of(struct engine *e, uint32_t saddr, uint32_t daddr, uint16_t sport,
			    uint16_t dport)
{
	size_t i;

	for (i = 0; i < ENGINE_FLOWS; i++) {
		const struct flow_key *k = &e->keys[i];

		if (k->used && k->daddr == daddr && k->sport == sport && k->dport == dport &&
		    (!k->saddr || !saddr || k->saddr == saddr))
			return &e->flows[i];
	}
	return NULL;
}

struct flow *engine_flow(struct engine *e, uint64_t owner, uint64_t cookie)
{
	size_t i;

	for (i = 0; i < ENGINE_FLOWS; i++)
		if (e->keys[i].used && e->flows[i].owner == owner && e->flows[i].cookie == cookie)
			return &e->flows[i];
	return NULL;
}

/* Renew the record that the client sees. Return: true if it differs. */
static bool flow_record(const struct engine *e, struct flow *f)
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
		v4_map(r.router, min->addr);
		r.mono_ns = min->mono_ns;
		r.value = min->msg.ecf;
		r.seq = min->msg.seq;
		r.period_ms = min->msg.period_ms;
		r.qdelay_100us = min->msg.qdelay_100us;
		r.flags = min->msg.flags;
		r.routers = (uint16_t)active;
		r.cause = e->params.use == ALLOW_USE_ERF ? PAQM_CAUSE_ERF : PAQM_CAUSE_ECF;
	} else {
		r.cause = f->allow.spoken ? PAQM_CAUSE_EXPIRED : PAQM_CAUSE_NONE;
	}
	if (!memcmp(&r, &f->rate, sizeof(r)))
		return false;
	f->rate = r;
	return true;
}

int engine_register(struct engine *e, uint64_t owner, const struct paqm_ipc_register *reg,
		    struct flow **flow)
{
	static const uint8_t any[16];
	struct flow_key k = {.sport = reg->sport, .dport = reg->dport, .used = true};
	struct flow *f, *same;
	size_t i;

	if (memcmp(reg->saddr, any, 16) && !v4_mapped(reg->saddr, &k.saddr))
		return EAFNOSUPPORT;
	if (!v4_mapped(reg->daddr, &k.daddr))
		return EAFNOSUPPORT;
	if (!k.daddr || !k.sport || !k.dport || !reg->ceil_bps || reg->ceil_bps > CEIL_MAX ||
	    reg->floor_bps > reg->ceil_bps)
		return EINVAL;
	f = engine_flow(e, owner, reg->cookie);
	same = flow_of(e, k.saddr, k.daddr, k.sport, k.dport);
	if (f != same)
		return EEXIST;
	if (!f) {
		for (i = 0; i < ENGINE_FLOWS && e->keys[i].used; i++)
			;
		if (i == ENGINE_FLOWS)
			return ENOSPC;
		f = &e->flows[i];
		memset(f, 0, sizeof(*f));
		if (ring_init(&f->ring, RING_CAP))
			return ENOMEM;
		f->serial = ++e->serial;
		f->owner = owner;
		f->cookie = reg->cookie;
	}
	e->keys[f - e->flows] = k;
	f->ssrc = reg->ssrc;
	f->floor_bps = reg->floor_bps;
	f->ceil_bps = reg->ceil_bps;
	f->gop_us = reg->gop_us;
	f->answer_us = reg->answer_us;
	flow_record(e, f);
	*flow = f;
	return 0;
}

void engine_unregister(struct engine *e, struct flow *f)
{
	e->keys[f - e->flows].used = false;
	ring_free(&f->ring);
}

/* Digest of what no router or NAT may change, bound to the flow. */
static uint64_t digest(const struct engine *e, const struct flow *f, const uint8_t *payload,
		       uint32_t len)
{
	uint8_t buf[8 + PAQM_QUOTE_UDP];

	paqm_put64(buf, f->serial);
	return siphash24(e->key, buf, 8 + paqm_rtp_invariant(payload, len, buf + 8));
}

static bool ssrc_agrees(const struct flow *f, const uint8_t *payload, uint32_t len)
{
	if (!f->ssrc)
		return true;
	return len >= 12 && payload[0] >> 6 == 2 && paqm_get32(payload + 8) == f->ssrc;
}

void engine_media(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns)
{
	uint32_t hlen, total, ulen, len;
	const uint8_t *udp;
	struct flow *f;

	if (caplen < 28 || ip[0] >> 4 != 4 || ip[9] != IPPROTO_UDP_)
		goto ignore;
	hlen = (ip[0] & 15U) * 4;
	total = paqm_get16(ip + 2);
	/* No router answers fragments. */
	if (hlen < 20 || paqm_get16(ip + 6) & 0x3FFF || total < hlen + 8 || caplen < hlen + 8)
		goto ignore;
	udp = ip + hlen;
	ulen = paqm_get16(udp + 4);
	if (ulen < 8 || ulen > total - hlen)
		goto ignore;
	len = ulen - 8;
	if (len > PAQM_QUOTE_UDP)
		len = PAQM_QUOTE_UDP;
	if (len < PROOF_MIN || caplen < hlen + 8 + len)
		goto ignore;
	f = flow_of(e, paqm_get32(ip + 12), paqm_get32(ip + 16), paqm_get16(udp),
		    paqm_get16(udp + 2));
	if (!f || !ssrc_agrees(f, udp + 8, len))
		goto ignore;
	ring_put(&f->ring, digest(e, f, udp + 8, len), now_ns, e->params.digest_life_ns);
	f->packets++;
	e->media++;
	return;
ignore:
	e->media_ignored++;
}

/* The IP packet as such. Return: where the message begins, or NULL. */
static const uint8_t *check_ip(const uint8_t *ip, uint32_t caplen, uint32_t *len, struct verdict *v)
{
	uint32_t hlen, total;

	if (caplen < 20) {
		v->refuse = REFUSE_IP_CUT;
		return NULL;
	}
	hlen = (ip[0] & 15U) * 4;
	total = paqm_get16(ip + 2);
	if (ip[0] >> 4 != 4 || hlen < 20 || total < hlen || ip[9] != IPPROTO_ICMP_) {
		v->refuse = REFUSE_IP_HEADER;
		return NULL;
	}
	v->addr = paqm_get32(ip + 12);
	if (total > caplen)
		v->refuse = REFUSE_IP_CUT;
	else if (paqm_checksum(ip, hlen))
		v->refuse = REFUSE_IP_CHECKSUM;
	else if (paqm_get16(ip + 6) & 0x3FFF)
		v->refuse = REFUSE_IP_FRAGMENT;
	else if (hlen > 20) /* no router of ours sends options */
		v->refuse = REFUSE_IP_OPTIONS;
	if (v->refuse)
		return NULL;
	*len = total - hlen;
	return ip + hlen;
}

static enum refuse check_order(const struct flow *f, const struct paqm_msg *m)
{
	switch (allow_order(&f->allow, m)) {
	case ALLOW_NEWER:
		return REFUSE_NONE;
	case ALLOW_REPLAY:
		return REFUSE_SEQ_REPLAY;
	case ALLOW_STALE:
		return REFUSE_SEQ_STALE;
	case ALLOW_OLD_BOOT:
		return REFUSE_BOOT_OLD;
	case ALLOW_FULL:
		break;
	}
	return REFUSE_ROUTERS_FULL;
}

static struct router *router_of(struct engine *e, uint64_t id)
{
	size_t i;

	for (i = 0; i < ENGINE_ROUTERS; i++)
		if (e->routers[i].used && e->routers[i].id == id)
			return &e->routers[i];
	return NULL;
}

static struct router *router_new(struct engine *e, uint64_t id, uint64_t now_ns)
{
	struct router *best = NULL;
	size_t i;

	for (i = 0; i < ENGINE_ROUTERS; i++) {
		struct router *r = &e->routers[i];

		if (!r->used) {
			best = r;
			break;
		}
		if (now_ns > r->mono_ns + ROUTER_IDLE_NS && (!best || r->mono_ns < best->mono_ns))
			best = r;
	}
	if (best)
		*best = (struct router){.used = true, .id = id, .mono_ns = now_ns};
	return best;
}

/* Check (f). The router's bucket is looked at first, so that one router which
 * sends too much cannot empty the bucket of all.
 */
static enum refuse spend(struct engine *e, uint64_t id, uint64_t now_ns, struct router **router)
{
	const struct engine_params *p = &e->params;
	struct router *r = router_of(e, id);

	bucket_fill(&e->bucket, &p->global, now_ns);
	if (r) {
		bucket_fill(&r->bucket, &p->router, now_ns);
		if (!bucket_has(&r->bucket, &p->router))
			return REFUSE_RATE_ROUTER;
	}
	if (!bucket_has(&e->bucket, &p->global))
		return REFUSE_RATE_GLOBAL;
	if (!r) {
		r = router_new(e, id, now_ns);
		if (!r)
			return REFUSE_ROUTERS_FULL;
		bucket_fill(&r->bucket, &p->router, now_ns);
	}
	bucket_take(&r->bucket, &p->router);
	bucket_take(&e->bucket, &p->global);
	*router = r;
	return REFUSE_NONE;
}

static enum refuse judge(struct engine *e, const uint8_t *icmp, uint32_t len, uint64_t now_ns,
			 struct verdict *v)
{
	struct paqm_quote q = {0};
	struct router *r = NULL;
	enum paqm_msg_err err;
	enum refuse why;
	struct flow *f;

	/* (a) well-formed, values usable */
	err = paqm_icmp_decode(icmp, len, PAQM_ICMP_TYPE_EXP, &v->msg, &q);
	if (err)
		return (enum refuse)(REFUSE_MSG_SHORT + (err - PAQM_MSG_SHORT));
	v->decoded = true;

	/* (b) about a flow that this host sends */
	f = flow_of(e, q.saddr, q.daddr, q.sport, q.dport);
	if (!f)
		return REFUSE_FLOW_UNKNOWN;
	v->flow = f;
	if (!ssrc_agrees(f, q.payload, q.payload_len))
		return REFUSE_FLOW_SSRC;

	/* (c) quotes a packet that this host sent a moment ago */
	switch (ring_find(&f->ring, digest(e, f, q.payload, q.payload_len), now_ns,
			  e->params.digest_life_ns)) {
	case RING_UNKNOWN:
		return REFUSE_QUOTE_UNKNOWN;
	case RING_OLD:
		return REFUSE_QUOTE_OLD;
	case RING_HIT:
		break;
	}

	/* (d) newer than what is known, (f) not too many */
	why = check_order(f, &v->msg);
	if (!why)
		why = spend(e, v->msg.router_id, now_ns, &r);
	if (why) {
		r = router_of(e, v->msg.router_id);
		if (r)
			r->refused++;
		return why;
	}

	/* (g) limits are applied when the routers are combined */
	allow_apply(&f->allow, &v->msg, v->addr, f->ceil_bps, e->params.use, now_ns,
		    e->params.digest_life_ns);
	r->addr = v->addr;
	r->msg = v->msg;
	r->mono_ns = now_ns;
	r->accepted++;
	f->accepted++;
	v->changed = flow_record(e, f);
	return REFUSE_NONE;
}

void engine_message(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns,
		    struct verdict *v)
{
	const uint8_t *icmp;
	uint32_t len = 0;

	*v = (struct verdict){.refuse = REFUSE_NONE};
	icmp = check_ip(ip, caplen, &len, v);
	if (icmp)
		v->refuse = judge(e, icmp, len, now_ns, v);
	if (v->refuse)
		e->refused[v->refuse]++;
	else
		e->accepted++;
}

bool engine_expire(struct engine *e, struct flow *f, uint64_t now_ns)
{
	return allow_expire(&f->allow, now_ns, e->params.digest_life_ns) && flow_record(e, f);
}

uint64_t engine_next(const struct engine *e)
{
	uint64_t next = UINT64_MAX;
	size_t i;

	for (i = 0; i < ENGINE_FLOWS; i++)
		if (e->keys[i].used)
			next = paqm_min64(next,
					  allow_next(&e->flows[i].allow, e->params.digest_life_ns));
	return next;
}
