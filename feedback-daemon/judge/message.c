// SPDX-License-Identifier: GPL-2.0
/* The pipeline of checks that a message must pass; see message.h. */
#include "feedback-daemon/judge/message.h"

#include <string.h>

#include "feedback-daemon/judge/flows.h"
#include "feedback-daemon/judge/media.h"
#include "feedback-daemon/judge/routers.h"

#define IPPROTO_ICMP_ 1
#define IPPROTO_FRAGMENT_ 44
#define IPPROTO_ICMPV6_ 58

/* A bare Source Quench has no period: take the longest of the published system. */
#define BARE_PERIOD_MS 520

_Static_assert((int)REFUSE_MSG_MISMATCH - (int)REFUSE_MSG_SHORT ==
		       (int)PAQM_MSG_MISMATCH - (int)PAQM_MSG_SHORT,
	       "codec errors and refusals correspond");
_Static_assert((int)PAQM_MSG_MISMATCH + 1 == (int)PAQM_MSG_ERR_MAX, "every codec error has a name");

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

/* Check (e). Whom a message came to, @to, is what its author says: the packets of this flow say
 * whether that is this host. Else the key of another host would be derived, and prove.
 */
static enum refuse check_tag(const struct engine *e, const struct flow *f, struct paqm_msg *m,
			     const struct paqm_quote *q, const struct addr *to, uint64_t now_ns)
{
	if (!media_left_from(e, f, to, now_ns))
		to = NULL;
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
	m->flags &= (paqm_u8)~PAQM_F_AUTH; /* it cannot be verified */
	return REFUSE_NONE;
}

/* Check (a) of the message in @ip. */
static enum paqm_msg_err decode(const uint8_t *ip, const uint8_t *icmp, uint32_t len,
				struct paqm_msg *m, struct paqm_quote *q)
{
	if (ip[0] >> 4 == 6)
		return paqm_icmp6_decode(icmp, len, ip + 8, ip + 24, m, q);
	return paqm_icmp_decode(icmp, len, m, q);
}

/* Give a bare message an identity and a sequence: one router per address, in order of arrival. */
static void complete_bare(const struct flow *f, const struct addr *addr, struct paqm_msg *m)
{
	size_t i;

	m->router_id = paqm_get32(addr->b + 12);
	m->period_ms = BARE_PERIOD_MS;
	for (i = 0; i < ALLOW_ROUTERS; i++)
		if (f->allow.slot[i].used && f->allow.slot[i].msg.router_id == m->router_id)
			m->seq = f->allow.slot[i].msg.seq + 1;
}

static struct flow *flow_quoted(struct engine *e, const struct paqm_quote *q, uint64_t now_ns)
{
	struct flow_key k = {
		.saddr = q->version == 4 ? addr_v4(q->src) : addr_v6(q->src),
		.daddr = q->version == 4 ? addr_v4(q->dst) : addr_v6(q->dst),
		.sport = q->sport,
		.dport = q->dport,
	};
	struct flow *f = flow_of(e, &k);

	/* The translator's address is known by what has left. */
	if (f && flow_translated(engine_key(e, f), &k) && !media_left_from(e, f, &k.saddr, now_ns))
		return NULL;
	return f;
}

/* @quoted: set to the digest of the quoted packet, for a message that may have come early. */
static enum refuse judge(struct engine *e, const uint8_t *ip, const uint8_t *icmp, uint32_t len,
			 uint64_t now_ns, struct verdict *v, uint64_t *quoted)
{
	bool bare = e->params.legacy && ip[0] >> 4 == 4 && len == PAQM_BARE_LEN &&
		    icmp[0] == PAQM_ICMP_TYPE_QUENCH;
	struct addr to = ip[0] >> 4 == 4 ? addr_v4(ip + 16) : addr_v6(ip + 24);
	struct paqm_quote q = {0};
	struct router *r = NULL;
	enum paqm_msg_err err;
	enum allow_use use;
	enum refuse why;
	struct flow *f;

	/* (a) well-formed, values usable */
	err = bare ? paqm_bare_decode(icmp, len, &v->msg, &q) : decode(ip, icmp, len, &v->msg, &q);
	if (err)
		return (enum refuse)(REFUSE_MSG_SHORT + (err - PAQM_MSG_SHORT));
	v->decoded = true;

	/* (b) about a flow that this host sends */
	f = flow_quoted(e, &q, now_ns);
	if (!f)
		return REFUSE_FLOW_UNKNOWN;
	v->flow = f;
	if (bare) {
		complete_bare(f, &v->addr, &v->msg);
		goto known;
	}
	if (!media_ssrc_agrees(f, q.payload, q.payload_len))
		return REFUSE_FLOW_SSRC;

	/* (c) quotes a packet that this host sent a moment ago */
	if (!media_digest(e, f, q.payload, q.payload_len, quoted))
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
	/* (d) newer than the last, (e) with a valid tag, (f) within the rate limits */
	why = check_order(f, &v->msg);
	if (!why)
		why = check_tag(e, f, &v->msg, &q, &to, now_ns);
	if (!why)
		why = router_spend(e, v->msg.router_id, f, now_ns, &r);
	if (why) {
		r = router_of(e, v->msg.router_id);
		if (r)
			r->refused++;
		return why;
	}

	/* (g) limits are applied when the routers are combined */
	use = e->params.use;
	if (bare)
		use = allow_published(use) ? ALLOW_USE_THESIS_ECF : ALLOW_USE_ECF;
	f->heard = *allow_apply(&f->allow, &v->msg, &v->addr, f->floor_bps, f->ceil_bps, use,
				now_ns, e->params.digest_life_ns);
	allow_damp(&f->allow, use, f->ceil_bps, now_ns);
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

/* Keep a message until the packet with this digest leaves. Return: false if too many wait. */
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

/* Judge the message in an IP packet; @may_wait: for the packet it quotes. */
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
