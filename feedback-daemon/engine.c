// SPDX-License-Identifier: GPL-2.0
/* Flow table, router table and the pipeline of checks; see engine.h. */
#include "engine.h"

#include <errno.h>
#include <string.h>

#define NS_PER_S 1000000000ULL
#define IPPROTO_ICMP_ 1
#define IPPROTO_UDP_ 17
#define IPPROTO_FRAGMENT_ 44
#define IPPROTO_ICMPV6_ 58

/* What a bare Source Quench does not say: the longest period of the published system. */
#define BARE_PERIOD_MS 520

/* Rings that are larger than they need to be are looked for so often. */
#define TRIM_NS NS_PER_S

/* Whose an open source address is is asked anew after this time. */
#define SOURCE_NS (10 * NS_PER_S)

/* A router may be replaced in the full table after this silence. */
#define ROUTER_IDLE_NS (30 * NS_PER_S)

/* A router tells each flow once in a round: four times a second, twenty times while much changes.
 * All routers together tell the whole flow table, and somewhat more.
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

_Static_assert(ENGINE_DIGESTS > RING_MIN * ENGINE_FLOWS, "there is something to share");
_Static_assert((int)REFUSE_MSG_MISMATCH - (int)REFUSE_MSG_SHORT ==
		       (int)PAQM_MSG_MISMATCH - (int)PAQM_MSG_SHORT,
	       "codec errors and refusals correspond");
_Static_assert(PAQM_IPC_RATE_MAX == PAQM_VALUE_MAX, "no rate is beyond what a message can say");
_Static_assert((int)PAQM_MSG_MISMATCH + 1 == (int)PAQM_MSG_ERR_MAX, "every codec error has a name");

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

static uint32_t hash(const struct engine *e, const uint8_t *p, uint32_t len)
{
	return (uint32_t)paqm_siphash24(e->key, p, len) & (ENGINE_HASH - 1);
}

/* The source may be open, so it is no part. */
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

/* The first of a chain that begins with @i and has the packets of @k, or some of them: number + 1;
 * 0: none.
 */
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

/* The flow of a packet. */
static struct flow *flow_of(struct engine *e, const struct flow_key *k)
{
	uint32_t i = overlap(e, k, e->tuple_index[hash_tuple(e, k)]);

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

/* Take flow number @i out of the list that begins at @p. */
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

/* Give flow number @i the key @k, in place of the one that it has or as its first. */
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

/* Renew the record that the client sees. Return: true if it differs. */
static bool flow_record(struct flow *f)
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

/* The user's slot, or one for him. */
static struct user *user_of(struct engine *e, uint32_t uid)
{
	struct user *u = (struct user *)engine_user(e, uid);
	size_t i;

	for (i = 0; !u && i < ENGINE_USERS; i++)
		if (!e->users[i].flows)
			u = &e->users[i];
	return u;
}

/* The ring of a flow has another size, or begins, or ends. */
static void account(struct engine *e, const struct flow *f, uint32_t cap_before, uint64_t now_ns)
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
	account(e, f, 0, 0);
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
	/* What there is of these packets must be the flow itself, and nothing beside it. */
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
	account(e, f, cap, 0);
	e->users[f->user].flows--;
	e->used--;
}

/* Digest of what proves a packet, bound to the flow. Return: false if it proves nothing. */
static bool digest(const struct engine *e, const struct flow *f, const uint8_t *payload,
		   uint32_t len, uint64_t *result)
{
	uint8_t buf[8 + PAQM_PROOF_MAX];
	uint32_t n = paqm_proof(payload, len, buf + 8);

	paqm_put64(buf, f->serial);
	*result = paqm_siphash24(e->key, buf, 8 + n);
	return n;
}

static bool ssrc_agrees(const struct flow *f, const uint8_t *payload, uint32_t len)
{
	if (!f->ssrc)
		return true;
	return len >= 12 && payload[0] >> 6 == 2 && paqm_get32(payload + 8) == f->ssrc;
}

/* An IP packet with UDP. */
struct media {
	struct flow_key key;
	const uint8_t *payload;
	uint32_t len; /* at most PAQM_PROOF_MAX */
};

/* Where the UDP header is. Return: its offset, 0 if there is none to look for. */
static uint32_t media_ip(const uint8_t *ip, uint32_t caplen, struct flow_key *k, uint32_t *total)
{
	uint32_t hlen;

	if (caplen < 28)
		return 0;
	if (ip[0] >> 4 == 4) {
		hlen = (ip[0] & 15U) * 4;
		*total = paqm_get16(ip + 2);
		k->saddr = addr_v4(ip + 12);
		k->daddr = addr_v4(ip + 16);
		/* No router answers fragments. */
		return hlen < 20 || ip[9] != IPPROTO_UDP_ || paqm_get16(ip + 6) & 0x3FFF ? 0 : hlen;
	}
	/* Nor packets with extension headers. */
	if (ip[0] >> 4 != 6 || caplen < PAQM_IP6_HDR + 8 || ip[6] != IPPROTO_UDP_)
		return 0;
	*total = PAQM_IP6_HDR + paqm_get16(ip + 4);
	k->saddr = addr_v6(ip + 8);
	k->daddr = addr_v6(ip + 24);
	return PAQM_IP6_HDR;
}

static bool media_parse(const uint8_t *ip, uint32_t caplen, struct media *m)
{
	uint32_t total = 0, hlen = media_ip(ip, caplen, &m->key, &total), ulen;
	const uint8_t *udp = ip + hlen;

	if (!hlen || total < hlen + 8 || caplen < hlen + 8)
		return false;
	ulen = paqm_get16(udp + 4);
	if (ulen < 8 || ulen > total - hlen)
		return false;
	m->key.sport = paqm_get16(udp);
	m->key.dport = paqm_get16(udp + 2);
	m->payload = udp + 8;
	m->len = ulen - 8 < PAQM_PROOF_MAX ? ulen - 8 : PAQM_PROOF_MAX;
	return caplen >= hlen + 8 + m->len;
}

/* May the ring double? What its user has beyond the least of each flow is what counts. */
static bool ring_room(const struct engine *e, const struct flow *f)
{
	const struct user *u = &e->users[f->user];

	return share_has(u->digests - u->flows * RING_MIN, f->ring.cap,
			 e->digests - e->used * RING_MIN, ENGINE_SPARE);
}

/* Rings give back what they need no more. It is not done where they are filled: a flow that has
 * fallen silent must not keep its memory.
 */
static void trim(struct engine *e, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < ENGINE_FLOWS; i++) {
		struct flow *f = &e->flows[i];
		uint32_t cap;

		if (!e->keys[i].used)
			continue;
		cap = f->ring.cap;
		ring_trim(&f->ring, now_ns, e->params.digest_life_ns);
		account(e, f, cap, now_ns);
	}
	e->trim_ns = e->digests > e->used * RING_MIN ? now_ns + TRIM_NS : UINT64_MAX;
}

/* Messages that have waited for this packet are due. */
static void prove_early(struct engine *e, uint64_t digest)
{
	uint32_t i;

	for (i = 0; i < e->waiting; i++) {
		if (e->early[i].digest == digest) {
			e->early[i].due_ns = 0;
			e->early_ns = 0;
		}
	}
}

/* Is the packet from a socket of the flow's user? One that named its source has said so. */
static bool is_own(struct engine *e, struct flow *f, const struct flow_key *packet, uint64_t now_ns)
{
	const struct owner_ends ends = {.saddr = packet->saddr,
					.daddr = packet->daddr,
					.sport = packet->sport,
					.dport = packet->dport};

	if (!e->owner || !addr_is_any(&engine_key(e, f)->saddr))
		return true;
	if (f->source_ns && addr_equal(&f->source, &packet->saddr) &&
	    now_ns < f->source_ns + SOURCE_NS)
		return true;
	if (e->owner(&ends, e->users[f->user].uid) != OWNER_HIS)
		return false;
	f->source = packet->saddr;
	f->source_ns = now_ns;
	return true;
}

void engine_media(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns)
{
	struct media m = {0};
	struct flow *f = media_parse(ip, caplen, &m) ? flow_of(e, &m.key) : NULL;
	uint64_t early, d;
	uint32_t cap;
	bool room;

	if (!f || !ssrc_agrees(f, m.payload, m.len) || !digest(e, f, m.payload, m.len, &d)) {
		e->media_ignored++;
		return;
	}
	if (!is_own(e, f, &m.key, now_ns)) {
		e->media_others++;
		return;
	}
	cap = f->ring.cap;
	early = f->ring.early;
	room = ring_room(e, f);
	f->ring.max = room ? RING_CAP : cap;
	ring_put(&f->ring, d, now_ns, e->params.digest_life_ns);
	prove_early(e, d);
	account(e, f, cap, now_ns);
	if (f->ring.early != early)
		e->forgot[cap == RING_CAP ? FORGOT_FLOW_FULL
			  : room	  ? FORGOT_NO_MEMORY
					  : FORGOT_USER_FULL]++;
	f->packets++;
	e->media++;
}

/* The IPv4 packet around a message. Return: where that begins, or NULL. */
static const uint8_t *check_ip4(const uint8_t *ip, uint32_t caplen, uint32_t *len,
				struct verdict *v)
{
	uint32_t hlen = (ip[0] & 15U) * 4, total = paqm_get16(ip + 2);

	if (hlen < 20 || total < hlen || ip[9] != IPPROTO_ICMP_) {
		v->refuse = REFUSE_IP_HEADER;
		return NULL;
	}
	v->addr = addr_v4(ip + 12);
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

/* Protocol numbers of the headers that may stand before ICMPv6 (RFC 8200, RFC 7045). */
static bool is_extension(uint8_t next)
{
	return next == 0 || next == 43 || next == 51 || next == 60 || next == 135 || next == 139 ||
	       next == 140;
}

static const uint8_t *check_ip6(const uint8_t *ip, uint32_t caplen, uint32_t *len,
				struct verdict *v)
{
	uint32_t total;

	if (caplen < PAQM_IP6_HDR) {
		v->refuse = REFUSE_IP_CUT;
		return NULL;
	}
	v->addr = addr_v6(ip + 8);
	total = PAQM_IP6_HDR + paqm_get16(ip + 4);
	if (total > caplen)
		v->refuse = REFUSE_IP_CUT;
	else if (ip[6] == IPPROTO_FRAGMENT_)
		v->refuse = REFUSE_IP_FRAGMENT;
	else if (is_extension(ip[6]))
		v->refuse = REFUSE_IP_OPTIONS;
	else if (ip[6] != IPPROTO_ICMPV6_)
		v->refuse = REFUSE_IP_HEADER;
	if (v->refuse)
		return NULL;
	*len = total - PAQM_IP6_HDR;
	return ip + PAQM_IP6_HDR;
}

/* The IP packet as such. Return: where the message begins, or NULL. */
static const uint8_t *check_ip(const uint8_t *ip, uint32_t caplen, uint32_t *len, struct verdict *v)
{
	if (caplen < 20) {
		v->refuse = REFUSE_IP_CUT;
		return NULL;
	}
	if (ip[0] >> 4 == 4)
		return check_ip4(ip, caplen, len, v);
	if (ip[0] >> 4 == 6)
		return check_ip6(ip, caplen, len, v);
	v->refuse = REFUSE_IP_HEADER;
	return NULL;
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

/* Check (e) */
static enum refuse check_tag(const struct engine *e, struct paqm_msg *m, const struct paqm_quote *q,
			     const struct addr *to)
{
	switch (keys_check(&e->keyring, m, q, to)) {
	case KEYS_VALID:
		return REFUSE_NONE;
	case KEYS_NONE:
		break;
	case KEYS_MISSING:
		return REFUSE_AUTH_MISSING;
	case KEYS_UNKNOWN:
		return REFUSE_KEY_UNKNOWN;
	case KEYS_BAD:
		return REFUSE_AUTH_BAD;
	}
	if (e->params.require_auth)
		return m->flags & PAQM_F_AUTH ? REFUSE_KEY_UNKNOWN : REFUSE_AUTH_MISSING;
	m->flags &= (paqm_u8)~PAQM_F_AUTH; /* nobody can tell */
	return REFUSE_NONE;
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

/* Has this router told the flow something within its present second? */
static bool has_told(const struct router *r, const struct flow *f)
{
	size_t i;

	for (i = 0; i < ALLOW_ROUTERS; i++)
		if (f->allow.slot[i].used && f->allow.slot[i].msg.router_id == r->id)
			return f->allow.slot[i].mono_ns >= r->second_ns;
	return false;
}

/* What a router may say now follows the flows that it tells, and leaves something to others. */
static struct bucket_limit router_limit(const struct engine_params *p, const struct router *r)
{
	uint64_t flows = r->told > r->told_before ? r->told : r->told_before;
	uint64_t per_s = p->router.per_s + flows * p->flow.per_s;
	uint64_t burst = p->router.burst + flows * p->flow.burst;
	uint64_t most_per_s = p->global.per_s - p->global.per_s / 10;
	uint64_t most_burst = p->global.burst - p->global.burst / 10;

	per_s = paqm_max64(p->router.per_s, paqm_min64(per_s, most_per_s));
	burst = paqm_max64(p->router.burst, paqm_min64(burst, most_burst));
	return (struct bucket_limit){.per_s = (uint32_t)per_s, .burst = (uint32_t)burst};
}

/* Bring a router's bucket up to date for a message to @f. */
static void router_fill(const struct engine_params *p, struct router *r, const struct flow *f,
			uint64_t now_ns, struct bucket_limit *limit)
{
	if (now_ns >= r->second_ns + NS_PER_S) {
		r->told_before = now_ns < r->second_ns + 2 * NS_PER_S ? r->told : 0;
		r->told = 0;
		r->second_ns = now_ns;
	}
	*limit = router_limit(p, r);
	bucket_fill(&r->bucket, limit, now_ns);
	if (r->told >= r->told_before && !has_told(r, f))
		r->bucket.credit_ns += p->flow.burst * (NS_PER_S / limit->per_s);
}

/* Check (f). The router's bucket is looked at first, so that one router which
 * sends too much cannot empty the bucket of all.
 */
static enum refuse spend(struct engine *e, uint64_t id, const struct flow *f, uint64_t now_ns,
			 struct router **router)
{
	const struct engine_params *p = &e->params;
	struct router *r = router_of(e, id);
	struct bucket_limit limit;

	bucket_fill(&e->bucket, &p->global, now_ns);
	if (r) {
		router_fill(p, r, f, now_ns, &limit);
		if (!bucket_has(&r->bucket, &limit))
			return REFUSE_RATE_ROUTER;
	}
	if (!bucket_has(&e->bucket, &p->global))
		return REFUSE_RATE_GLOBAL;
	if (!r) {
		r = router_new(e, id, now_ns);
		if (!r)
			return REFUSE_ROUTERS_FULL;
		router_fill(p, r, f, now_ns, &limit);
	}
	r->told += !has_told(r, f);
	bucket_take(&r->bucket, &limit);
	bucket_take(&e->bucket, &p->global);
	*router = r;
	return REFUSE_NONE;
}

/* Check (a) of the message in @ip. */
static enum paqm_msg_err decode(const uint8_t *ip, const uint8_t *icmp, uint32_t len,
				struct paqm_msg *m, struct paqm_quote *q)
{
	if (ip[0] >> 4 == 6)
		return paqm_icmp6_decode(icmp, len, ip + 8, ip + 24, m, q);
	return paqm_icmp_decode(icmp, len,
				len && icmp[0] == PAQM_ICMP_TYPE_QUENCH ? PAQM_ICMP_TYPE_QUENCH
									: PAQM_ICMP_TYPE_EXP,
				m, q);
}

/* Identity and order of a message that has none: one router per address, as it comes. */
static void complete_bare(const struct flow *f, const struct addr *addr, struct paqm_msg *m)
{
	size_t i;

	m->router_id = paqm_get32(addr->b + 12);
	m->period_ms = BARE_PERIOD_MS;
	for (i = 0; i < ALLOW_ROUTERS; i++)
		if (f->allow.slot[i].used && f->allow.slot[i].msg.router_id == m->router_id)
			m->seq = f->allow.slot[i].msg.seq + 1;
}

static struct flow *flow_quoted(struct engine *e, const struct paqm_quote *q)
{
	struct flow_key k = {
		.saddr = q->version == 4 ? addr_v4(q->src) : addr_v6(q->src),
		.daddr = q->version == 4 ? addr_v4(q->dst) : addr_v6(q->dst),
		.sport = q->sport,
		.dport = q->dport,
	};

	return flow_of(e, &k);
}

/* @quoted: digest of the packet that the message quotes, if one of those that have left is none. */
static enum refuse judge(struct engine *e, const uint8_t *ip, const uint8_t *icmp, uint32_t len,
			 uint64_t now_ns, struct verdict *v, uint64_t *quoted)
{
	bool bare = e->params.legacy && ip[0] >> 4 == 4 && len == PAQM_BARE_LEN &&
		    icmp[0] == PAQM_ICMP_TYPE_QUENCH;
	struct addr to = ip[0] >> 4 == 4 ? addr_v4(ip + 16) : addr_v6(ip + 24);
	struct paqm_quote q = {0};
	struct router *r = NULL;
	enum paqm_msg_err err;
	enum refuse why;
	struct flow *f;

	/* (a) well-formed, values usable */
	err = bare ? paqm_bare_decode(icmp, len, &v->msg, &q) : decode(ip, icmp, len, &v->msg, &q);
	if (err)
		return (enum refuse)(REFUSE_MSG_SHORT + (err - PAQM_MSG_SHORT));
	v->decoded = true;

	/* (b) about a flow that this host sends */
	f = flow_quoted(e, &q);
	if (!f)
		return REFUSE_FLOW_UNKNOWN;
	v->flow = f;
	if (bare) {
		complete_bare(f, &v->addr, &v->msg);
		goto known;
	}
	if (!ssrc_agrees(f, q.payload, q.payload_len))
		return REFUSE_FLOW_SSRC;

	/* (c) quotes a packet that this host sent a moment ago */
	if (!digest(e, f, q.payload, q.payload_len, quoted))
		return REFUSE_QUOTE_SHORT;
	switch (ring_find(&f->ring, *quoted, now_ns, e->params.digest_life_ns)) {
	case RING_UNKNOWN:
		return REFUSE_QUOTE_UNKNOWN;
	case RING_OLD:
		return REFUSE_QUOTE_OLD;
	case RING_HIT:
		break;
	}

known:
	/* (d) newer than what is known, (e) from who has the key, (f) not too many */
	why = check_order(f, &v->msg);
	if (!why)
		why = check_tag(e, &v->msg, &q, &to);
	if (!why)
		why = spend(e, v->msg.router_id, f, now_ns, &r);
	if (why) {
		r = router_of(e, v->msg.router_id);
		if (r)
			r->refused++;
		return why;
	}

	/* (g) limits are applied when the routers are combined */
	f->heard = *allow_apply(&f->allow, &v->msg, &v->addr, f->floor_bps, f->ceil_bps,
				bare ? ALLOW_USE_ECF : e->params.use, now_ns,
				e->params.digest_life_ns);
	allow_damp(&f->allow, f->ceil_bps, now_ns);
	r->addr = v->addr;
	r->msg = v->msg;
	r->mono_ns = now_ns;
	r->accepted++;
	f->accepted++;
	e->due_ns[f - e->flows] = allow_next(&f->allow, e->params.digest_life_ns);
	e->next_ns = paqm_min64(e->next_ns, e->due_ns[f - e->flows]);
	v->changed = flow_record(f);
	return REFUSE_NONE;
}

/* Let a message wait for the packet with this digest. Return: false if too many do. */
static bool keep_early(struct engine *e, const uint8_t *ip, uint32_t len, uint64_t digest,
		       uint64_t now_ns)
{
	struct early *m = &e->early[e->waiting];

	if (!e->params.early_ns || e->waiting == ENGINE_EARLY || len > sizeof(m->ip))
		return false;
	e->waiting++;
	*m = (struct early){.digest = digest, .due_ns = now_ns + e->params.early_ns, .len = len};
	memcpy(m->ip, ip, len);
	e->early_ns = paqm_min64(e->early_ns, m->due_ns);
	return true;
}

bool engine_waited(struct engine *e, uint64_t now_ns, struct early *m)
{
	uint32_t i;

	if (now_ns < e->early_ns)
		return false;
	e->early_ns = UINT64_MAX;
	for (i = 0; i < e->waiting; i++) {
		if (e->early[i].due_ns <= now_ns) {
			*m = e->early[i];
			e->early[i] = e->early[--e->waiting];
			e->early_ns = 0; /* look again: there may be more */
			return true;
		}
		e->early_ns = paqm_min64(e->early_ns, e->early[i].due_ns);
	}
	return false;
}

/* A message in an IP packet; @may_wait: for the packet that it quotes. */
static void take_message(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns,
			 bool may_wait, struct verdict *v)
{
	uint64_t quoted = 0;
	const uint8_t *icmp;
	uint32_t len = 0;

	*v = (struct verdict){.refuse = REFUSE_NONE};
	icmp = check_ip(ip, caplen, &len, v);
	if (icmp)
		v->refuse = judge(e, ip, icmp, len, now_ns, v, &quoted);
	if (v->refuse == REFUSE_QUOTE_UNKNOWN && may_wait) {
		v->waits = keep_early(e, ip, (uint32_t)(icmp - ip) + len, quoted, now_ns);
		if (v->waits)
			return;
	}
	if (v->refuse)
		e->refused[v->refuse]++;
	else
		e->accepted++;
	if (v->refuse && v->flow) {
		v->flow->refused++;
		v->flow->refused_why = v->refuse;
	}
}

void engine_message(struct engine *e, const uint8_t *ip, uint32_t caplen, uint64_t now_ns,
		    struct verdict *v)
{
	take_message(e, ip, caplen, now_ns, true, v);
}

void engine_again(struct engine *e, const struct early *m, uint64_t now_ns, struct verdict *v)
{
	take_message(e, m->ip, m->len, now_ns, false, v);
}

bool engine_expire(struct engine *e, struct flow *f, uint64_t now_ns)
{
	if (!allow_expire(&f->allow, now_ns, e->params.digest_life_ns))
		return false;
	allow_damp(&f->allow, f->ceil_bps, now_ns);
	return flow_record(f);
}

void engine_expire_all(struct engine *e, uint64_t now_ns, void (*told)(void *data, struct flow *f),
		       void *data)
{
	uint64_t next = UINT64_MAX;
	uint32_t i;

	if (now_ns >= e->trim_ns)
		trim(e, now_ns);
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
