// SPDX-License-Identifier: GPL-2.0
/* Tables and lines of text; see print.h. */
#include "feedback-daemon/paqmctl/print.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* bit/s in the words of tc(8) */
static const char *rate(double bps, char buf[24])
{
	if (bps >= 1e9)
		snprintf(buf, 24, "%.3fGbit", bps / 1e9);
	else if (bps >= 1e6)
		snprintf(buf, 24, "%.3fMbit", bps / 1e6);
	else if (bps >= 1e3)
		snprintf(buf, 24, "%.1fKbit", bps / 1e3);
	else
		snprintf(buf, 24, "%.0fbit", bps);
	return buf;
}

/* An ECF value: a factor, or an increase in bit/s; a router need not say one. */
static const char *ecf(const json_t *o, char buf[24])
{
	double v = number(o, "ecf");
	char r[24];

	if (!json_is_number(json_object_get(o, "ecf")))
		snprintf(buf, 24, "-");
	else if (v <= 1)
		snprintf(buf, 24, "x%.3f", v);
	else
		snprintf(buf, 24, "+%s", rate(v, r));
	return buf;
}

static const char *flags(const json_t *o, char buf[64])
{
	const json_t *a = json_object_get(o, "flags");
	size_t i, used = 0;

	strcpy(buf, "-");
	for (i = 0; i < json_array_size(a) && used < 48; i++)
		used += (size_t)snprintf(buf + used, 64 - used, "%s%.12s", i ? "," : "",
					 json_string_value(json_array_get(a, i)));
	return buf;
}

static void print_routers(const json_t *routers)
{
	char b1[24], b2[24], b3[64];
	size_t i;

	printf("%-15s %-16s %8s %11s %11s %8s %5s %5s %8s %7s  %s\n", "ROUTER", "ID", "AGE ms",
	       "ECF", "ERF", "DELAY ms", "FLOWS", "UTIL", "ACCEPTED", "REFUSED", "FLAGS");
	for (i = 0; i < json_array_size(routers); i++) {
		const json_t *r = json_array_get(routers, i);

		printf("%-15s %-16s %8lld %11s %11s %8.1f %5lld %4.0f%% %8lld %7lld  %s\n",
		       str(r, "address"), str(r, "router_id"), integer(r, "age_ms"), ecf(r, b1),
		       rate(number(r, "erf_bps"), b2), number(r, "qdelay_ms"), integer(r, "flows"),
		       100 * number(r, "utilisation"), integer(r, "accepted"),
		       integer(r, "refused"), flags(r, b3));
	}
}

static void print_flows(const json_t *flows)
{
	char b1[24], b2[24], b3[24];
	size_t i;

	printf("%-45s %11s %-8s %-16s %11s %11s %8s %8s\n", "FLOW", "ALLOWED", "CAUSE",
	       "LIMITED BY", "FLOOR", "CEILING", "PACKETS", "ACCEPTED");
	for (i = 0; i < json_array_size(flows); i++) {
		const json_t *f = json_array_get(flows, i), *s = json_object_get(f, "status");
		bool advice = integer(f, "rate_bps") > 0;

		printf("%-45s %11s %-8s %-16s %11s %11s %8lld %8lld\n", str(f, "flow"),
		       advice ? rate(number(f, "rate_bps"), b1) : "-", str(f, "cause"),
		       str(f, "limited_by"), rate(number(f, "floor_bps"), b2),
		       rate(number(f, "ceil_bps"), b3), integer(f, "packets"),
		       integer(f, "accepted"));
		if (json_is_object(s))
			printf("    sends %s, GOP %lld, quantizer %lld\n",
			       rate(number(s, "wire_bps"), b1), integer(s, "gop"),
			       integer(s, "qp"));
	}
}

/* Counters by reason, those that are not 0. */
static void print_reasons(const json_t *s, const char *key, const char *what)
{
	const char *reason;
	json_t *n;

	json_object_foreach(json_object_get(s, key), reason, n) if (json_integer_value(n))
		printf("  %s %-14s %lld\n", what, reason, (long long)json_integer_value(n));
}

static void print_users(const json_t *users)
{
	size_t i;

	for (i = 0; i < json_array_size(users); i++) {
		const json_t *u = json_array_get(users, i);

		printf("uid %lld: %lld clients, %lld flows, %lld digests\n", integer(u, "uid"),
		       integer(u, "clients"), integer(u, "flows"), integer(u, "digests"));
	}
}

static void print_stats(const json_t *s)
{
	const json_t *ifaces = json_object_get(s, "interfaces");
	const json_t *captures = json_object_get(s, "captures");
	size_t i;

	printf("paqmd %s, up %.1f s, uses %s, %lld clients\n", str(s, "version"),
	       number(s, "uptime_ms") / 1000, str(s, "use"), integer(s, "clients"));
	for (i = 0; i < json_array_size(ifaces); i++) {
		const json_t *f = json_array_get(ifaces, i);

		printf("interface %s: %s, %lld packets\n", str(f, "name"),
		       json_is_true(json_object_get(f, "up")) ? "up" : "absent",
		       integer(f, "received"));
	}
	for (i = 0; i < json_array_size(captures); i++) {
		const json_t *c = json_array_get(captures, i);

		printf("capture of %s: %lld packets, %lld lost\n", str(c, "of"),
		       integer(c, "received"), integer(c, "dropped"));
	}
	printf("media packets %lld (%lld ignored); messages accepted %lld, refused %lld\n",
	       integer(s, "media_packets"), integer(s, "media_ignored"), integer(s, "accepted"),
	       integer(s, "refused_total"));
	if (integer(s, "media_others"))
		printf("media of flows without a source address, not from their user's sockets: "
		       "%lld\n",
		       integer(s, "media_others"));
	print_reasons(s, "refused", "refused");
	print_users(json_object_get(s, "users"));
	print_reasons(s, "flows_refused", "flows refused:");
	print_reasons(s, "clients_refused", "clients refused:");
	print_reasons(s, "controls_refused", "control clients refused:");
	print_reasons(s, "digests_forgotten", "digests forgotten early:");
	if (integer(s, "link_foreign"))
		printf("interface notifications not from the kernel %lld\n",
		       integer(s, "link_foreign"));
	if (integer(s, "bad_records") || integer(s, "peers_refused") || integer(s, "accept_failed"))
		printf("bad records %lld, peers refused %lld, not accepted for lack of files or "
		       "memory %lld\n",
		       integer(s, "bad_records"), integer(s, "peers_refused"),
		       integer(s, "accept_failed"));
}

static void print_time(long long t_ns)
{
	time_t t = (time_t)(t_ns / 1000000000);
	struct tm tm;
	char buf[16];

	localtime_r(&t, &tm);
	strftime(buf, sizeof(buf), "%H:%M:%S", &tm);
	printf("%s.%06lld ", buf, t_ns % 1000000000 / 1000);
}

void print_event(const json_t *e)
{
	const char *what = str(e, "event");
	char b1[24], b2[24], b3[24], b4[64];

	print_time(integer(e, "t_ns"));
	if (!strcmp(what, "accepted")) {
		printf("%s %s seq %lld %s rate %s -> %s may send %s (%s), delay %.1f ms, %s\n",
		       str(e, "address"), str(e, "router_id"), integer(e, "seq"), ecf(e, b1),
		       rate(number(e, "erf_bps"), b2), str(e, "flow"),
		       rate(number(e, "rate_bps"), b3), str(e, "cause"), number(e, "qdelay_ms"),
		       flags(e, b4));
	} else if (!strcmp(what, "refused")) {
		printf("%s %s refused: %s (%lld so far)\n", str(e, "address"), str(e, "router_id"),
		       str(e, "reason"), integer(e, "total"));
	} else if (!strcmp(what, "lost")) {
		printf("%lld events lost: a flood, or this terminal is too slow\n",
		       integer(e, "count"));
	} else {
		printf("%s %s", what, str(e, "flow"));
		if (integer(e, "rate_bps"))
			printf(", may send %s", rate(number(e, "rate_bps"), b1));
		putchar('\n');
	}
}

static void print_why(const json_t *flows)
{
	char b[24];
	size_t i;

	for (i = 0; i < json_array_size(flows); i++) {
		const json_t *f = json_array_get(flows, i);

		printf("%s: %s\n    %s\n", str(f, "flow"),
		       integer(f, "rate_bps") ? rate(number(f, "rate_bps"), b) : "no advice",
		       str(f, "text"));
	}
	if (!json_array_size(flows))
		puts("no flow is registered: no sender is connected");
}

void print_show(const json_t *o)
{
	const json_t *part;

	part = json_object_get(o, "routers");
	if (part)
		print_routers(part);
	part = json_object_get(o, "flows");
	if (part)
		print_flows(part);
	part = json_object_get(o, "stats");
	if (part)
		print_stats(part);
	part = json_object_get(o, "why");
	if (part)
		print_why(part);
}
