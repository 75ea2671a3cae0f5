// SPDX-License-Identifier: GPL-2.0
/* Captured packets, and the interfaces they come from; see capture.h. */
#include "feedback-daemon/capture/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feedback-daemon/capture/capturer.h"
#include "feedback-daemon/capture/links.h"
#include "feedback-daemon/host/log.h"

#define RETRY_NS 2000000000ULL
#define AGE_MAX_NS 1000000000ULL
#define LATE_NS 3000000000ULL	  /* an opener that is silent for this long is logged */
#define READ_BYTES 262144	  /* at once: what the pipe holds */
#define REFUSED_NS 60000000000ULL /* between two lines about one reason */
#define RECENT 8		  /* packets remembered, */
#define AGAIN_NS 1000000ULL /* for this long: stacked devices show a packet at the same time */

struct iface {
	char name[CONF_IFACE_LEN]; /* empty: the slot is free */
	unsigned int index;	   /* of the device, 0: none is captured */
	bool up;		   /* captured; "any" has no number */
	bool absent;		   /* and the log says so */
	bool named;		   /* still in the configuration; used by capture_reload() */
	uint64_t received;
};

/* What the log says of refused messages. */
struct refused {
	uint64_t next_ns; /* when to say it again */
	uint64_t more;	  /* left out since it was said */
};

struct capture {
	struct source packets; /* first: the loop knows us by it */
	struct source opener;
	struct daemon *d;
	const struct capture_sink *sink;
	struct links links;
	/* The opener's work in progress. Others are served meanwhile, so it may be outdated
	 * when done.
	 */
	bool asked, due;
	uint64_t late_ns; /* when to log that it hangs; UINT64_MAX: logged */
	char asked_name[CONF_IFACES][CONF_IFACE_LEN];
	uint64_t asked_change, change; /* of flows: asked for, in force */
	struct iface iface[CONF_IFACES];
	unsigned int loopback;	   /* number of that device */
	struct filter_flows flows; /* what is let through */
	uint64_t retry_ns;
	/* Read once per turn: packets carry the wall clock. */
	uint64_t now_real, now_ns;
	uint64_t slept_ns; /* since the machine started */
	uint64_t age_max;  /* of what waits to be read */
	struct capturer_count count[2];
	struct refused refused[REFUSE_MAX];
	/* Stacked devices show the same packet several times. */
	struct capturer_record recent[RECENT];
	unsigned int newest;
	size_t have; /* bytes of @read, the last record may not be whole */
	uint8_t read[READ_BYTES] __attribute__((aligned(8)));
};

static void flows_of(const struct engine *e, struct filter_flows *f)
{
	size_t i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < ENGINE_FLOWS; i++) {
		const struct flow_key *k = &e->keys[i];

		if (!k->used)
			continue;
		if (f->n == FILTER_FLOWS) {
			/* All of them are alike. */
			memset(f, 0, sizeof(*f));
			f->n = FILTER_FLOWS + 1;
			return;
		}
		f->flow[f->n++] = (struct filter_flow){
			.version = addr_is_v4(&k->daddr) ? 4 : 6,
			.addr = paqm_get32(k->daddr.b + 12),
			.ports = (uint32_t)k->sport << 16 | k->dport,
		};
	}
}

/* What waits to be read may be from before a sleep. */
static void set_now(struct capture *c)
{
	uint64_t slept;

	c->now_real = clock_ns(CLOCK_REALTIME);
	c->now_ns = clock_ns(DAEMON_CLOCK);
	slept = c->now_ns - paqm_min64(clock_ns(CLOCK_MONOTONIC), c->now_ns);
	c->age_max = AGE_MAX_NS + (slept > c->slept_ns ? slept - c->slept_ns : 0);
	c->slept_ns = slept;
}

/* A step of the wall clock must not age or rejuvenate packets much. */
static uint64_t time_of(const struct capture *c, const struct capturer_record *r)
{
	uint64_t age = c->now_real > r->t_ns ? c->now_real - r->t_ns : 0;

	return c->now_ns - paqm_min64(paqm_min64(age, c->age_max), c->now_ns);
}

/* The interface that a packet came by; NULL: it does not count. */
static struct iface *iface_of(struct capture *c, unsigned int index)
{
	unsigned int i, any = CONF_IFACES;

	for (i = 0; i < CONF_IFACES; i++) {
		if (c->iface[i].up && c->iface[i].index == index)
			return &c->iface[i];
		if (c->iface[i].up && !c->iface[i].index)
			any = i;
	}
	/* Our packets show up on the other device as well; on a bridge, those of others do,
	 * too. To capture there, name it.
	 */
	return any == CONF_IFACES || links_is_part(&c->links, index) ? NULL : &c->iface[any];
}

/* The same packet, however many hosts it has crossed in between: this one forwards to its guests.
 */
static bool same(const struct capturer_record *a, const struct capturer_record *b)
{
	uint8_t ip[FILTER_SNAP];

	if (a->len != b->len || a->len < 12)
		return false;
	memcpy(ip, a->ip, a->len);
	if (ip[0] >> 4 == 4) {
		ip[8] = b->ip[8]; /* TTL, and the checksum over it */
		memcpy(ip + 10, b->ip + 10, 2);
	} else {
		ip[7] = b->ip[7]; /* hop limit */
	}
	return !memcmp(ip, b->ip, a->len);
}

/* Has this very packet been seen on another device? */
static bool is_again(struct capture *c, const struct capturer_record *r)
{
	unsigned int i;

	for (i = 0; i < RECENT; i++) {
		const struct capturer_record *o = &c->recent[i];

		if (o->index != r->index && o->what == r->what && r->t_ns < o->t_ns + AGAIN_NS &&
		    same(o, r))
			return true;
	}
	c->newest = (c->newest + 1) % RECENT;
	memcpy(&c->recent[c->newest], r, capturer_size(r->len));
	return false;
}

/* Anybody may send what is refused, for ever. Messages about flows that are not registered are
 * usual: a sender that knows nothing of paqmd is told its rate like any other.
 */
static void log_refused(struct capture *c, const struct verdict *v, uint64_t now_ns)
{
	struct refused *r = &c->refused[v->refuse];
	char addr[ADDR_TEXT], more[40] = "";

	if (v->refuse == REFUSE_FLOW_UNKNOWN && !log_verbose)
		return;
	if (now_ns < r->next_ns) {
		r->more++;
		return;
	}
	if (r->more)
		snprintf(more, sizeof(more), " (%llu more before)", (unsigned long long)r->more);
	log_warning("message from %s refused: %s%s", addr_text(&v->addr, addr),
		    refuse_name(v->refuse), more);
	*r = (struct refused){.next_ns = now_ns + REFUSED_NS};
}

static void log_verdict(struct capture *c, const struct verdict *v, uint64_t now_ns)
{
	char addr[ADDR_TEXT];

	if (v->refuse)
		log_refused(c, v, now_ns);
	else if (log_verbose && v->changed)
		log_limited(LOG_CLASS_RATE, "message %u from %s: flow %llx may send %llu bit/s",
			    v->msg.seq, addr_text(&v->addr, addr),
			    (unsigned long long)v->flow->cookie,
			    (unsigned long long)v->flow->rate.rate_bps);
}

/* A message that arrived at @t_ns of the wall clock has been judged. */
static void judged(struct capture *c, const struct verdict *v, const uint8_t *ip, uint32_t len,
		   uint64_t t_ns, uint64_t now_ns)
{
	log_verdict(c, v, now_ns);
	c->sink->judged(c->d, v, ip, len, t_ns);
}

static void message(struct capture *c, const struct capturer_record *r)
{
	uint64_t at_ns = time_of(c, r);
	struct verdict v;

	engine_message(&c->d->engine, r->ip, r->len, at_ns, &v);
	if (!v.waits)
		judged(c, &v, r->ip, r->len, c->now_real - (c->now_ns - at_ns), c->now_ns);
}

/* Judge the messages that were waiting for the packets they quote. */
static void judge_waited(struct capture *c, uint64_t now_ns)
{
	struct engine *e = &c->d->engine;
	struct verdict v;
	struct early m;

	while (engine_waited(e, now_ns, &m)) {
		engine_again(e, &m, now_ns, &v);
		judged(c, &v, m.ip, m.len, clock_ns(CLOCK_REALTIME), now_ns);
	}
}

static void packet(struct capture *c, const struct capturer_record *r)
{
	struct iface *f = iface_of(c, r->index);

	/* The kernel routes what a queue of this host says to the host itself. */
	bool own = r->what == CAPTURED_MESSAGE && r->index == c->loopback;

	if (!f && !own)
		return;
	if (f)
		f->received++;
	if (is_again(c, r))
		return;
	if (r->what == CAPTURED_MEDIA)
		engine_media(&c->d->engine, r->ip, r->len, time_of(c, r));
	else
		message(c, r);
}

/* The capturer is trusted no more than the packets it reads. */
static void record(struct capture *c, const struct capturer_record *r)
{
	switch (r->what) {
	case CAPTURED_MEDIA:
	case CAPTURED_MESSAGE:
		packet(c, r);
		break;
	case CAPTURED_COUNTS:
		if (r->len == sizeof(c->count))
			memcpy(c->count, r->count, sizeof(c->count));
		break;
	case CAPTURED_END:
		log_line("capture ended: %.*s", r->len, r->why);
		break;
	}
}

/* Return: the bytes of all complete records; 0 after an impossible one. */
static size_t records(struct capture *c)
{
	size_t at = 0, size;

	while (c->have - at >= offsetof(struct capturer_record, ip)) {
		const struct capturer_record *r = (const struct capturer_record *)(c->read + at);

		size = capturer_size(r->len);
		if (r->len > FILTER_SNAP) {
			log_line("the capturer sent a record that is too long");
			c->d->stop = DAEMON_FAILED;
			return 0;
		}
		if (c->have - at < size)
			break;
		record(c, r);
		at += size;
	}
	return at;
}

static void packets_ready(struct source *s, uint32_t events)
{
	struct capture *c = (struct capture *)s;
	ssize_t n = read(s->fd, c->read + c->have, sizeof(c->read) - c->have);
	size_t done;

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		log_line("the capturer has ended");
		c->d->stop = DAEMON_FAILED;
		return;
	}
	c->have += (size_t)n;
	set_now(c);
	done = records(c);
	c->have -= done;
	memmove(c->read, c->read + done, c->have);
}

/* ---------------------------------------------------------------- interfaces */

static void iface_lost(struct iface *f, const char *why)
{
	log_line("%s: capture ended: %s", f->name, why);
	f->up = false;
	f->index = 0;
	f->absent = true;
}

static void link_told(void *data, const struct link_news *news)
{
	struct capture *c = data;
	unsigned int i;

	c->due |= !news; /* what was lost may have been about any of them */
	for (i = 0; news && i < CONF_IFACES; i++) {
		struct iface *f = &c->iface[i];
		bool ours = f->up && f->index && f->index == news->index;
		bool same = f->name[0] && link_is(news, f->name);

		if (ours && (news->gone || !same))
			iface_lost(f, news->gone ? "the interface has gone"
						 : "the interface was renamed");
		c->due |= (ours && (news->gone || !same)) || (same && !ours && !news->gone);
	}
}

/* What the opener has found. */
static void set_iface(struct capture *c, unsigned int i, unsigned int index)
{
	struct iface *f = &c->iface[i];
	bool all = !strcmp(f->name, "any"), was = f->up && f->index == index;

	if (!f->name[0] || strcmp(f->name, c->asked_name[i]))
		return; /* wanted no more, or not yet asked for */
	if (f->up && f->index && !index)
		iface_lost(f, "the interface has gone");
	f->up = index || all;
	f->index = index;
	if (!f->up && !f->absent)
		log_warning("%s: no such interface; it is captured once it exists; see 'ip "
			    "link' for the names",
			    f->name);
	f->absent = !f->up;
	if (!f->up || was)
		return;
	log_info("%s: capturing", f->name);
	if (links_is_part(&c->links, index))
		log_line("%s: is part of another device (bridge, bond, team): name that instead. "
			 "What comes to an Ethernet address of its own is not heard here, and what "
			 "others send through it counts as sent by this host",
			 f->name);
}

static bool ask(struct capture *c)
{
	unsigned int i;

	for (i = 0; i < CONF_IFACES; i++)
		strcpy(c->asked_name[i], c->iface[i].name);
	c->due = false;
	c->asked = true;
	return opener_filter(c->opener.fd, c->asked_name, &c->flows);
}

static void answered(struct capture *c, const struct opener_answer *a)
{
	unsigned int i;

	c->asked = false;
	if (a->error) {
		log_line("cannot set the filter: %s; trying again in %llu s", strerror(a->error),
			 RETRY_NS / 1000000000ULL);
		c->retry_ns = clock_ns(DAEMON_CLOCK) + RETRY_NS;
		return;
	}
	c->loopback = a->loopback;
	for (i = 0; i < CONF_IFACES; i++)
		set_iface(c, i, a->index[i]);
}

static void filter_in_force(struct capture *c, uint64_t change)
{
	c->change = change;
	c->sink->filter_in_force(c->d, change);
}

/* An answer, or its end: without the opener no flow could be let through, so the whole
 * daemon starts anew.
 */
static void opener_ready(struct source *s, uint32_t events)
{
	struct capture *c = (struct capture *)((char *)s - offsetof(struct capture, opener));
	struct opener_answer a;
	int err = opener_take(s->fd, false, &a);

	(void)events;
	if (err == EAGAIN)
		return;
	if (err) {
		log_line("the opener has ended");
		c->d->stop = DAEMON_FAILED;
		return;
	}
	if (c->late_ns == UINT64_MAX)
		log_info("the opener answers again");
	answered(c, &a);
	/* A filter that cannot be set will not be set sooner by a sender that waits. */
	filter_in_force(c, c->asked_change);
}

static struct iface *slot_of(struct capture *c, const char *name)
{
	size_t i;

	for (i = 0; i < CONF_IFACES; i++)
		if (!strcmp(c->iface[i].name, name))
			return &c->iface[i];
	return NULL;
}

int capture_open(struct daemon *d, const struct opener *o, const struct capture_sink *sink)
{
	struct capture *c = calloc(1, sizeof(*c));
	struct opener_answer a = {0};
	unsigned int i;
	int err = EPIPE;

	if (!c)
		return -1;
	d->capture = c;
	c->d = d;
	c->sink = sink;
	c->retry_ns = UINT64_MAX;
	set_now(c);
	c->packets = (struct source){.fd = o->packets, .ready = packets_ready};
	c->opener = (struct source){.fd = o->ask, .ready = opener_ready};
	c->links.source.fd = -1;
	if (links_open(&c->links, d, link_told, c) || loop_watch(d, &c->opener, EPOLLIN) ||
	    loop_watch(d, &c->packets, EPOLLIN))
		return -1;
	for (i = 0; i < d->conf.ifaces; i++)
		strcpy(c->iface[i].name, d->conf.iface[i]);
	if (ask(c))
		err = opener_take(c->opener.fd, true, &a);
	if (err || a.error) {
		if (err != EPIPE) /* the process that would has said why */
			log_line("cannot capture: %s", strerror(err ? err : a.error));
		return -1;
	}
	answered(c, &a);
	return 0;
}

void capture_reload(struct daemon *d)
{
	struct capture *c = d->capture;
	struct iface *f;
	unsigned int i;

	for (i = 0; i < CONF_IFACES; i++)
		c->iface[i].named = false;
	for (i = 0; i < d->conf.ifaces; i++) {
		f = slot_of(c, d->conf.iface[i]);
		if (f)
			f->named = true;
	}
	for (i = 0; i < CONF_IFACES; i++)
		if (!c->iface[i].named)
			c->iface[i] = (struct iface){0};
	for (i = 0; i < d->conf.ifaces; i++)
		if (!slot_of(c, d->conf.iface[i]))
			strcpy(slot_of(c, "")->name, d->conf.iface[i]); /* as many as names */
	c->due = true;
}

void capture_close(struct daemon *d)
{
	if (!d->capture)
		return;
	links_close(&d->capture->links);
	close(d->capture->opener.fd);
	close(d->capture->packets.fd);
	free(d->capture);
	d->capture = NULL;
}

/* Are other flows to be let through? If the filter in force will do, it is so at once. */
static bool flows_due(struct daemon *d)
{
	struct capture *c = d->capture;
	struct filter_flows flows;

	if (c->change == d->flows_change)
		return false;
	flows_of(&d->engine, &flows);
	if (!memcmp(&flows, &c->flows, sizeof(flows))) {
		filter_in_force(c, d->flows_change);
		return false;
	}
	c->flows = flows;
	return true;
}

uint64_t capture_run(struct daemon *d, uint64_t now_ns)
{
	struct capture *c = d->capture;

	judge_waited(c, now_ns);
	if (now_ns >= c->retry_ns) {
		c->retry_ns = UINT64_MAX;
		c->due = true;
	}
	if (!c->asked && (flows_due(d) | c->due)) {
		c->asked_change = d->flows_change;
		c->late_ns = now_ns + LATE_NS;
		if (!ask(c)) {
			log_line("the opener cannot be asked: %s", strerror(errno));
			d->stop = DAEMON_FAILED;
		}
	}
	if (!c->asked)
		return c->retry_ns;
	if (now_ns >= c->late_ns) {
		log_line("the opener has not answered for %llu s: new flows and interfaces have "
			 "to wait; restart paqmd if it hangs",
			 LATE_NS / 1000000000ULL);
		c->late_ns = UINT64_MAX;
	}
	return paqm_min64(c->retry_ns, c->late_ns);
}

void capture_stats(struct daemon *d, struct request_env *env)
{
	const struct capture *c = d->capture;
	unsigned int i;

	env->link_foreign = c->links.foreign;
	env->media = (struct request_count){c->count[0].received, c->count[0].dropped};
	env->messages = (struct request_count){c->count[1].received, c->count[1].dropped};
	env->ifaces = 0;
	for (i = 0; i < CONF_IFACES; i++) {
		const struct iface *f = &c->iface[i];
		struct request_iface *r = &env->iface[env->ifaces];

		if (!f->name[0])
			continue;
		env->ifaces++;
		strcpy(r->name, f->name);
		r->up = f->up;
		r->received = f->received;
	}
}
