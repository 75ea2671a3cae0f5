// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Advice and refusals that paqmd sends, and how long advice holds; see client.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "libpaqmclient/client.h"

#define RECORDS_PER_CALL 64

/* A flow that was refused because of others is registered again after a pause that doubles each
 * time. Those due within the same tick are registered together.
 */
#define AGAIN_MIN_NS 500000000ULL
#define AGAIN_MAX_NS 8000000000ULL
#define AGAIN_TICK_NS 125000000ULL

static void add_news(struct paqm_client *c, struct flow *f)
{
	int n = (int)(f - c->flow);

	if (f->news)
		return;
	f->news = true;
	f->next = -1;
	if (c->last >= 0)
		c->flow[c->last].next = n;
	else
		c->first = n;
	c->last = n;
}

/* The cookie is the flow's number and a count, so that it is never used twice. */
static struct flow *flow_by_cookie(struct paqm_client *c, uint64_t cookie)
{
	struct flow *f = flow_of(c, (int)(cookie & 0xFFFFFF));

	return f && f->reg.cookie == cookie ? f : NULL;
}

static void set_router(struct paqm_client_advice *a, const struct paqm_ipc_rate *r)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(r->router, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, r->router + 12, a->router, sizeof(a->router));
	else
		inet_ntop(AF_INET6, r->router, a->router, sizeof(a->router));
}

void end_at(struct paqm_client *c, struct flow *f, uint64_t at)
{
	f->ends_ns = at;
	if (at >= c->ends_ns)
		return;
	c->ends_ns = at;
	set_timer(c);
}

/* paqmd sends a record for each message of the router that sets the rate, and when that one is
 * silent for too long: nothing for longer than this means that it hangs.
 */
static uint64_t life_ns(const struct paqm_ipc_rate *r)
{
	uint64_t life = 3 * 1000000ULL * r->period_ms;

	if (life < LIFE_MIN_NS)
		life = LIFE_MIN_NS;
	if (life > LIFE_MAX_NS)
		life = LIFE_MAX_NS;
	return life + LIFE_MORE_NS;
}

static void on_rate(struct paqm_client *c, const struct paqm_ipc_rate *r)
{
	struct flow *f = flow_by_cookie(c, r->cookie);
	struct paqm_client_advice *a;

	if (!f)
		return;
	a = &f->advice;
	/* A paqmd that has just started knows nothing yet: what held before is
	 * still the best there is.
	 */
	if (r->cause == PAQM_CAUSE_NONE && a->rate_bps && f->lost)
		return;
	f->lost = false;
	end_at(c, f, r->rate_bps ? now_ns() + life_ns(r) : NEVER);
	f->said = r->flags;
	*a = (struct paqm_client_advice){
		.flow = a->flow,
		/* 4 and 5 are the library's own */
		.cause = r->cause <= PAQM_CAUSE_EXPIRED ? r->cause : PAQM_CLIENT_OTHER,
		.rate_bps = r->rate_bps,
		.seq = r->seq,
		.router_id = r->router_id,
		.qdelay_ms = (float)r->qdelay_100us / 10,
		.period_ms = r->period_ms,
		.routers = r->routers,
		.captured_ns = r->mono_ns,
	};
	memcpy(&a->value, &r->value, sizeof(a->value));
	if (r->routers)
		set_router(a, r);
	add_news(c, f);
}

/* Others may make room, or give up these packets: try again later. */
static void ask_later(struct paqm_client *c, struct flow *f)
{
	f->pause_ns = f->pause_ns ? 2 * f->pause_ns : AGAIN_MIN_NS;
	if (f->pause_ns > AGAIN_MAX_NS)
		f->pause_ns = AGAIN_MAX_NS;
	f->again_ns = now_ns() + f->pause_ns;
	f->again_ns += AGAIN_TICK_NS - f->again_ns % AGAIN_TICK_NS;
	if (f->again_ns >= c->again_ns)
		return;
	c->again_ns = f->again_ns;
	set_timer(c);
}

void ask_again(struct paqm_client *c, uint64_t now)
{
	int i;

	c->again_ns = NEVER;
	for (i = 0; i < c->flows; i++) {
		struct flow *f = &c->flow[i];

		if (!flow_of(c, i) || !f->again_ns)
			continue;
		if (now >= f->again_ns) {
			f->again_ns = 0;
			f->state = UNKNOWN;
			c->untold = true;
		} else if (f->again_ns < c->again_ns) {
			c->again_ns = f->again_ns;
		}
	}
}

static void on_registered(struct paqm_client *c, const struct paqm_ipc_registered *r)
{
	struct flow *f = flow_by_cookie(c, r->cookie);

	if (!f)
		return;
	f->again_ns = 0;
	if (!r->error) {
		f->pause_ns = 0;
		return;
	}
	/* Any other error lies in the registration itself, and remains. */
	if (r->error != EINVAL && r->error != EAFNOSUPPORT)
		ask_later(c, f);
	if (f->advice.cause == PAQM_CLIENT_REFUSED && f->advice.error == r->error)
		return;
	f->lost = false;
	f->ends_ns = NEVER;
	f->said = 0;
	f->advice = (struct paqm_client_advice){
		.flow = f->advice.flow, .cause = PAQM_CLIENT_REFUSED, .error = r->error};
	add_news(c, f);
}

static void on_record(struct paqm_client *c, const void *record, size_t len)
{
	union {
		struct paqm_ipc_hdr hdr;
		struct paqm_ipc_registered registered;
		struct paqm_ipc_rate rate;
	} u = {0};

	if (len < sizeof(u.hdr))
		return;
	memcpy(&u, record, len < sizeof(u) ? len : sizeof(u)); /* a later release may say more */
	if (u.hdr.magic != PAQM_IPC_MAGIC || u.hdr.version != PAQM_IPC_VERSION || u.hdr.len != len)
		return;
	c->heard = true;
	c->trouble = NULL;
	c->doubt_ns = NEVER;
	if (u.hdr.kind == PAQM_IPC_REGISTERED && len >= sizeof(u.registered))
		on_registered(c, &u.registered);
	else if (u.hdr.kind == PAQM_IPC_RATE && len >= sizeof(u.rate))
		on_rate(c, &u.rate);
}

void receive(struct paqm_client *c)
{
	char record[PAQM_IPC_RECORD_MAX];
	ssize_t n;
	int i;

	for (i = 0; i < RECORDS_PER_CALL; i++) {
		n = recv(c->fd, record, sizeof(record), MSG_DONTWAIT);
		if (n > 0) {
			on_record(c, record, (size_t)n);
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		lose(c, n < 0 ? strerror(errno) : "it closed the connection");
		return;
	}
}

void end_advice(struct paqm_client *c, uint64_t now)
{
	int i;

	c->ends_ns = NEVER;
	for (i = 0; i < c->flows; i++) {
		struct flow *f = &c->flow[i];

		if (!flow_of(c, i))
			continue;
		if (now < f->ends_ns) {
			if (f->ends_ns < c->ends_ns)
				c->ends_ns = f->ends_ns;
			continue;
		}
		/* Another paqmd that knows of no advice is no loss. */
		f->advice = (struct paqm_client_advice){
			.flow = i,
			.cause = f->lost && c->heard ? PAQM_CLIENT_NONE : PAQM_CLIENT_LOST};
		f->lost = false;
		f->ends_ns = NEVER;
		f->said = 0;
		add_news(c, f);
	}
}
