// SPDX-License-Identifier: GPL-2.0
/* The router table and message budgets; see routers.h. */
#include "feedback-daemon/judge/routers.h"

/* A router may be replaced in the full table after this silence. */
#define ROUTER_IDLE_NS (30 * NS_PER_S)

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

struct router *router_of(struct engine *e, uint64_t id)
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

/* Has this router told the flow anything within the current second? */
static bool has_told(const struct router *r, const struct flow *f)
{
	size_t i;

	for (i = 0; i < ALLOW_ROUTERS; i++)
		if (f->allow.slot[i].used && f->allow.slot[i].msg.router_id == r->id)
			return f->allow.slot[i].mono_ns >= r->second_ns;
	return false;
}

/* A router's limit grows with the flows it tells, and leaves a tenth to others. */
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

/* The router's bucket is checked first, so that one router that sends too much cannot drain the
 * common bucket.
 */
enum refuse router_spend(struct engine *e, uint64_t id, const struct flow *f, uint64_t now_ns,
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
