// SPDX-License-Identifier: GPL-2.0
/* Control requests and JSON views; see request.h. */
#include "feedback-daemon/sockets/request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "feedback-daemon/host/utf8.h"

static const char *const causes[] = {
	[PAQM_CAUSE_NONE] = "none",
	[PAQM_CAUSE_ERF] = "erf",
	[PAQM_CAUSE_ECF] = "ecf",
	[PAQM_CAUSE_EXPIRED] = "expired",
};

static json_t *hex(uint64_t v, int digits)
{
	return json_sprintf("%0*" PRIx64, digits, v);
}

static json_t *num(uint64_t v)
{
	return json_integer((json_int_t)v);
}

/* A binary32 of the wire; messages with other than finite values are refused. */
static double f32(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return (double)v;
}

static json_t *addr(const struct addr *a)
{
	char buf[ADDR_TEXT];

	return json_string(addr_text(a, buf));
}

/* Address and port; the address in brackets where it has colons (RFC 5952 section 6). */
static const char *end_text(const struct addr *a, uint16_t port, char *buf, size_t size)
{
	char text[ADDR_TEXT];

	if (addr_is_any(a))
		snprintf(buf, size, "*:%u", port);
	else
		snprintf(buf, size, addr_is_v4(a) ? "%s:%u" : "[%s]:%u", addr_text(a, text), port);
	return buf;
}

static json_t *flow_name(const struct flow_key *k)
{
	char s[ADDR_TEXT + 8], d[ADDR_TEXT + 8];

	return json_sprintf("%s > %s", end_text(&k->saddr, k->sport, s, sizeof(s)),
			    end_text(&k->daddr, k->dport, d, sizeof(d)));
}

/* What comes from outside may be no UTF-8, or cut within a character: such bytes become '?'. */
static json_t *text(const char *s)
{
	json_t *o = json_string(s);
	char copy[512];

	if (o)
		return o;
	snprintf(copy, sizeof(copy), "%s", s);
	utf8_mend(copy);
	return json_string(copy);
}

static json_t *flags(uint8_t f)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} names[] = {
		{PAQM_F_OVERLOAD, "overload"},
		{PAQM_F_POLICED, "policed"},
		{PAQM_F_FINAL, "final"},
		{PAQM_F_AUTH, "auth"},
	};
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (f & names[i].bit)
			json_array_append_new(a, json_string(names[i].name));
	return a;
}

/* What a message says; common to routers, allowances and events. */
static void put_msg(json_t *o, const struct paqm_msg *m)
{
	json_object_set_new(o, "router_id", hex(m->router_id, 16));
	json_object_set_new(o, "boot", hex(m->boot, 8));
	json_object_set_new(o, "seq", num(m->seq));
	json_object_set_new(o, "version", num(m->version));
	json_object_set_new(o, "ecf", m->ecf ? json_real(f32(m->ecf)) : json_null());
	json_object_set_new(o, "erf_bps", num(m->rate));
	json_object_set_new(o, "period_ms", num(m->period_ms));
	json_object_set_new(o, "qdelay_ms", json_real(m->qdelay_100us / 10.0));
	json_object_set_new(o, "flows", num(m->flows));
	json_object_set_new(o, "utilisation", json_real(m->util / 65535.0));
	json_object_set_new(o, "flags", flags(m->flags));
}

static json_t *view_allow(const struct allow *a, uint64_t now_ns)
{
	json_t *o = json_object();

	json_object_set_new(o, "address", addr(&a->addr));
	put_msg(o, &a->msg);
	json_object_set_new(o, "rate_bps", num(a->rate));
	json_object_set_new(o, "active", json_boolean(a->active));
	json_object_set_new(o, "age_ms", num((now_ns - a->mono_ns) / 1000000));
	return o;
}

static void put_rate(json_t *o, const struct flow *f)
{
	json_object_set_new(o, "rate_bps", num(f->rate.rate_bps));
	json_object_set_new(o, "cause", json_string(causes[f->rate.cause]));
	json_object_set_new(o, "limited_by",
			    f->rate.routers ? hex(f->rate.router_id, 16) : json_null());
}

static void put_identity(json_t *o, const struct engine *e, const struct flow *f)
{
	json_object_set_new(o, "flow", flow_name(engine_key(e, f)));
	json_object_set_new(o, "cookie", hex(f->cookie, 16));
}

static json_t *view_flow(const struct engine *e, const struct request_env *env,
			 const struct flow *f)
{
	json_t *o = json_object(), *routers = json_array(), *status = NULL;
	size_t i;

	put_identity(o, e, f);
	json_object_set_new(o, "client", num(f->owner));
	json_object_set_new(o, "ssrc", f->ssrc ? hex(f->ssrc, 8) : json_null());
	json_object_set_new(o, "floor_bps", num(f->floor_bps));
	json_object_set_new(o, "ceil_bps", num(f->ceil_bps));
	json_object_set_new(o, "gop_ms", json_real(f->gop_us / 1000.0));
	json_object_set_new(o, "answer_ms", json_real(f->answer_us / 1000.0));
	put_rate(o, f);
	json_object_set_new(o, "held", json_boolean(f->allow.damp.held));
	for (i = 0; i < ALLOW_ROUTERS; i++)
		if (f->allow.slot[i].used)
			json_array_append_new(routers, view_allow(&f->allow.slot[i], env->now_ns));
	json_object_set_new(o, "routers", routers);
	json_object_set_new(o, "packets", num(f->packets));
	json_object_set_new(o, "accepted", num(f->accepted));
	json_object_set_new(o, "refused", num(f->refused));
	json_object_set_new(o, "digests_overwritten", num(f->ring.early));
	if (f->has_status)
		status =
			json_pack("{s:I,s:I,s:I}", "wire_bps", (json_int_t)f->status.wire_bps,
				  "gop", (json_int_t)f->status.gop, "qp", (json_int_t)f->status.qp);
	json_object_set_new(o, "status", status ? status : json_null());
	return o;
}

/* The next flow from slot @i on, or ENGINE_FLOWS. */
static size_t next_flow(const struct engine *e, size_t i)
{
	while (i < ENGINE_FLOWS && !e->keys[i].used)
		i++;
	return i;
}

typedef json_t *(*flow_view)(const struct engine *e, const struct request_env *env,
			     const struct flow *f);

/* At most REQUEST_FLOWS flows from slot @from on; where to go on, if there are more. */
static void put_flows(json_t *o, const char *name, flow_view view, const struct engine *e,
		      const struct request_env *env, size_t from)
{
	json_t *a = json_array();
	size_t i;

	for (i = next_flow(e, from); i < ENGINE_FLOWS && json_array_size(a) < REQUEST_FLOWS;
	     i = next_flow(e, i + 1))
		json_array_append_new(a, view(e, env, &e->flows[i]));
	json_object_set_new(o, name, a);
	if (i < ENGINE_FLOWS)
		json_object_set_new(o, "next", num(i));
}

static json_t *view_routers(const struct engine *e, uint64_t now_ns)
{
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < ENGINE_ROUTERS; i++) {
		const struct router *r = &e->routers[i];
		json_t *o;

		if (!r->used)
			continue;
		o = json_object();
		json_object_set_new(o, "address", addr(&r->addr));
		put_msg(o, &r->msg);
		json_object_set_new(o, "age_ms", num((now_ns - r->mono_ns) / 1000000));
		json_object_set_new(o, "accepted", num(r->accepted));
		json_object_set_new(o, "refused", num(r->refused));
		json_array_append_new(a, o);
	}
	return a;
}

/* Counters by reason, from the @first on. */
static json_t *reasons(const uint64_t *n, unsigned int first, unsigned int max,
		       const char *(*name)(unsigned int))
{
	json_t *o = json_object();
	unsigned int i;

	for (i = first; i < max; i++)
		json_object_set_new(o, name(i), num(n[i]));
	return o;
}

static const char *message_reason(unsigned int i)
{
	return refuse_name((enum refuse)i);
}

json_t *request_refused(const struct engine *e)
{
	return reasons(e->refused, REFUSE_NONE + 1, REFUSE_MAX, message_reason);
}

static const char *flow_reason(unsigned int i)
{
	return not_taken_name((enum not_taken)i);
}

static const char *digest_reason(unsigned int i)
{
	return forgot_name((enum forgot)i);
}

static json_t *view_full(const struct clients_full *full)
{
	return json_pack("{s:I,s:I}", "user_full", (json_int_t)full->user, "all_full",
			 (json_int_t)full->all);
}

/* Each user's share of the common resources. */
static json_t *view_users(const struct engine *e, const struct request_env *env)
{
	json_t *a = json_array();
	unsigned int i;

	for (i = 0; i < env->users; i++) {
		const struct user *u = engine_user(e, env->user[i].uid);

		json_array_append_new(a, json_pack("{s:I,s:I,s:I,s:I}", "uid",
						   (json_int_t)env->user[i].uid, "clients",
						   (json_int_t)env->user[i].clients, "flows",
						   (json_int_t)(u ? u->flows : 0), "digests",
						   (json_int_t)(u ? u->digests : 0)));
	}
	return a;
}

static json_t *view_count(const char *of, const struct request_count *c)
{
	return json_pack("{s:s,s:I,s:I}", "of", of, "received", (json_int_t)c->received, "dropped",
			 (json_int_t)c->dropped);
}

static json_t *view_stats(const struct engine *e, const struct request_env *env)
{
	json_t *o = json_object(), *ifaces = json_array(), *captures = json_array();
	uint64_t total = 0;
	unsigned int i;

	for (i = REFUSE_NONE + 1; i < REFUSE_MAX; i++)
		total += e->refused[i];
	for (i = 0; i < env->ifaces; i++)
		json_array_append_new(ifaces,
				      json_pack("{s:o,s:b,s:I}", "name", text(env->iface[i].name),
						"up", env->iface[i].up, "received",
						(json_int_t)env->iface[i].received));
	json_object_set_new(o, "version", json_string(PAQM_VERSION));
	json_object_set_new(o, "use", json_string(allow_uses[e->params.use]));
	json_object_set_new(o, "keys", num(e->keyring.n));
	json_object_set_new(o, "require_auth", json_boolean(e->params.require_auth));
	json_object_set_new(o, "uptime_ms", num((env->now_ns - env->start_ns) / 1000000));
	json_object_set_new(o, "clients", num(env->clients));
	json_object_set_new(o, "media_packets", num(e->media));
	json_object_set_new(o, "media_ignored", num(e->media_ignored));
	json_object_set_new(o, "media_others", num(e->media_others));
	json_object_set_new(o, "accepted", num(e->accepted));
	json_object_set_new(o, "refused_total", num(total));
	json_object_set_new(o, "refused", request_refused(e));
	json_object_set_new(o, "bad_records", num(env->bad_records));
	json_object_set_new(o, "peers_refused", num(env->peers_refused));
	json_object_set_new(o, "accept_failed", num(env->accept_failed));
	json_object_set_new(o, "link_foreign", num(env->link_foreign));
	json_object_set_new(o, "clients_refused", view_full(&env->senders_full));
	json_object_set_new(o, "controls_refused", view_full(&env->controls_full));
	json_object_set_new(o, "flows_refused",
			    reasons(e->not_taken, 0, NOT_TAKEN_MAX, flow_reason));
	json_object_set_new(o, "digests", num(e->digests));
	json_object_set_new(o, "digests_forgotten",
			    reasons(e->forgot, 0, FORGOT_MAX, digest_reason));
	json_object_set_new(o, "users", view_users(e, env));
	json_object_set_new(o, "interfaces", ifaces);
	json_array_append_new(captures, view_count("media", &env->media));
	json_array_append_new(captures, view_count("messages", &env->messages));
	json_object_set_new(o, "captures", captures);
	return o;
}

/* The reason for the current rate: a code for programs, a sentence for people. */
struct reason {
	const char *code;
	char text[320];
};

static void say(struct reason *r, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct reason *r, const char *code, const char *fmt, ...)
{
	va_list ap;

	r->code = code;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

/* A router's advice is in force. */
static void reason_advice(struct reason *r, const struct flow *f, const struct allow *from,
			  const char *who, double age_s)
{
	double told = (double)from->rate / 1e6, floor = (double)f->floor_bps / 1e6,
	       ceiling = (double)f->ceil_bps / 1e6;
	unsigned int n = f->rate.routers;

	if (told < floor)
		say(r, "floor",
		    "router %s allows %.3f Mbit/s (%.1f s ago), less than the floor of %.3f Mbit/s "
		    "registered by the sender",
		    who, told, age_s, floor);
	else if (told > ceiling)
		say(r, "ceiling",
		    "every router allows more than the sender's ceiling of %.3f Mbit/s; the least "
		    "is %.3f Mbit/s from router %s, %.1f s ago",
		    ceiling, told, who, age_s);
	else if (f->rate.rate_bps < from->rate)
		say(r, "damped",
		    "router %s allows %.3f Mbit/s (%.1f s ago), but the allowed rate keeps rising "
		    "and falling: damped to %.3f Mbit/s, rising slowly until it settles",
		    who, told, age_s, (double)f->rate.rate_bps / 1e6);
	else
		say(r, "advice",
		    "router %s allows %.3f Mbit/s (%.1f s ago), the least of %u router%s", who,
		    told, age_s, n, n == 1 ? "" : "s");
}

/* No router's advice is in force. */
static void reason_none(struct reason *r, const struct engine *e, const struct request_env *env,
			const struct flow *f, const char *who, double age_s)
{
	unsigned int i, gone = 0;

	for (i = 0; i < env->ifaces; i++)
		gone += !env->iface[i].up;
	if (f->accepted)
		say(r, "expired",
		    "router %s has been silent for %.1f s: it is off the path, idle or down, or "
		    "its messages are lost%s",
		    who, age_s, f->refused ? "; some were refused, see 'paqmctl flows'" : "");
	else if (!f->packets && f->others)
		say(r, "not_own",
		    "%" PRIu64 " packets of this flow have left, none of them from a socket of the "
		    "user who registered it: name its source address, or register it as that user",
		    f->others);
	else if (f->refused)
		say(r, "unproven",
		    "%" PRIu64
		    " messages named this flow and none was accepted; the last was refused: %s",
		    f->refused, refuse_name(f->refused_why));
	else if (!f->packets)
		say(r, "no_media",
		    "no packet of this flow has been seen leaving: is it sent, from these ports, "
		    "with this SSRC, through a captured interface%s?",
		    gone ? " (one is gone)" : "");
	else
		say(r, "no_message",
		    "%" PRIu64 " packets have left and no message ever came: no router with "
		    "feedback is a bottleneck on this path, or a firewall or NAT drops ICMP type "
		    "253 (carrier quench, type 4, crosses NAT)%s",
		    f->packets,
		    e->refused[REFUSE_FLOW_UNKNOWN]
			    ? "; messages about unknown flows did come: are addresses translated?"
			    : "");
}

static json_t *view_why(const struct engine *e, const struct request_env *env, const struct flow *f)
{
	bool advice = f->rate.routers;
	const struct allow *from = &f->heard;
	struct reason r = {.code = ""};
	json_t *o = json_object();
	char who[ADDR_TEXT];
	unsigned int n;
	double age_s;

	if (advice)
		allow_min(&f->allow, f->floor_bps, f->ceil_bps, &from, &n);
	age_s = (double)(env->now_ns - from->mono_ns) / 1e9;
	addr_text(&from->addr, who);
	if (advice)
		reason_advice(&r, f, from, who, age_s);
	else
		reason_none(&r, e, env, f, who, age_s);
	put_identity(o, e, f);
	put_rate(o, f);
	json_object_set_new(o, "code", json_string(r.code));
	json_object_set_new(o, "text", json_string(r.text));
	json_object_set_new(o, "router", f->accepted ? json_string(who) : json_null());
	json_object_set_new(o, "router_rate_bps", f->accepted ? num(from->rate) : json_null());
	json_object_set_new(o, "age_ms", f->accepted ? num((uint64_t)(age_s * 1000)) : json_null());
	json_object_set_new(o, "routers", num(f->rate.routers));
	json_object_set_new(o, "packets", num(f->packets));
	json_object_set_new(o, "accepted", num(f->accepted));
	json_object_set_new(o, "refused", num(f->refused));
	json_object_set_new(o, "refused_reason",
			    f->refused ? json_string(refuse_name(f->refused_why)) : json_null());
	return o;
}

static json_t *failure(const char *what, const char *quoted)
{
	char all[512];

	snprintf(all, sizeof(all), "%s%s", what, quoted);
	return json_pack("{s:b,s:o}", "ok", 0, "error", text(all));
}

json_t *request_forbidden(void)
{
	return failure("only root and the user who runs paqmd may capture and reload", "");
}

json_t *request_reloaded(const char *why)
{
	return why ? failure("", why) : json_pack("{s:b}", "ok", 1);
}

/* What a request gets in its answer, and what the server does. */
static const struct command {
	const char *name;
	bool flows, routers, stats, why;
	enum request_act act;
} commands[] = {
	{.name = "show", .flows = true, .routers = true, .stats = true},
	{.name = "flows", .flows = true},
	{.name = "routers", .routers = true},
	{.name = "stats", .stats = true},
	{.name = "why", .why = true},
	{.name = "watch", .act = REQUEST_WATCH},
	{.name = "capture", .act = REQUEST_CAPTURE},
	{.name = "reload", .act = REQUEST_RELOAD},
};

static const struct command *command_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

json_t *request_answer(const struct engine *e, const struct request_env *env, const char *line,
		       size_t len, enum request_act *act)
{
	json_error_t err;
	json_t *req = json_loadb(line, len, JSON_REJECT_DUPLICATES, &err);
	const char *name = json_string_value(json_object_get(req, "cmd"));
	const struct command *c = name ? command_of(name) : NULL;
	json_int_t from = json_integer_value(json_object_get(req, "from"));
	json_t *o;

	*act = REQUEST_NOTHING;
	if (!req)
		return failure("not a JSON object: ", err.text);
	json_decref(req);
	if (!name)
		return failure("no \"cmd\": send {\"cmd\": \"show\"}", "");
	if (!c)
		return failure("unknown cmd: show, flows, routers, stats, why, watch, capture or "
			       "reload",
			       "");
	if (from < 0 || from > ENGINE_FLOWS)
		return failure("from: must be the value of next in an answer", "");
	*act = c->act;
	o = json_pack("{s:b}", "ok", 1);
	if (c->flows)
		put_flows(o, "flows", view_flow, e, env, (size_t)from);
	if (c->routers && !from)
		json_object_set_new(o, "routers", view_routers(e, env->now_ns));
	if (c->stats && !from)
		json_object_set_new(o, "stats", view_stats(e, env));
	if (c->why)
		put_flows(o, "why", view_why, e, env, (size_t)from);
	return o;
}

json_t *request_event_verdict(const struct engine *e, const struct verdict *v, uint64_t t_ns)
{
	json_t *o = json_object();

	json_object_set_new(o, "event", json_string(v->refuse ? "refused" : "accepted"));
	json_object_set_new(o, "t_ns", num(t_ns));
	json_object_set_new(o, "address", addr(&v->addr));
	if (v->refuse) {
		json_object_set_new(o, "reason", json_string(refuse_name(v->refuse)));
		json_object_set_new(o, "total", num(e->refused[v->refuse]));
	}
	if (v->decoded)
		put_msg(o, &v->msg);
	if (v->flow) {
		put_identity(o, e, v->flow);
		put_rate(o, v->flow);
	}
	return o;
}

json_t *request_event_flow(const struct engine *e, const char *event, const struct flow *f,
			   uint64_t t_ns)
{
	json_t *o = json_object();

	json_object_set_new(o, "event", json_string(event));
	json_object_set_new(o, "t_ns", num(t_ns));
	put_identity(o, e, f);
	put_rate(o, f);
	return o;
}

json_t *request_event_packet(const struct verdict *v, const uint8_t *ip, uint32_t len,
			     uint64_t t_ns)
{
	static const char digit[] = "0123456789abcdef";
	char text[2 * REQUEST_PACKET_MAX + 1];
	json_t *o = json_object();
	uint32_t i;

	for (i = 0; i < len && i < REQUEST_PACKET_MAX; i++) {
		text[2 * i] = digit[ip[i] >> 4];
		text[2 * i + 1] = digit[ip[i] & 15];
	}
	text[2 * i] = 0;
	json_object_set_new(o, "event", json_string("packet"));
	json_object_set_new(o, "t_ns", num(t_ns));
	json_object_set_new(o, "reason", json_string(refuse_name(v->refuse)));
	json_object_set_new(o, "ip", json_string(text));
	return o;
}
