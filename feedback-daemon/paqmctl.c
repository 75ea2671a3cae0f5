// SPDX-License-Identifier: GPL-2.0
/*
 * paqmctl: shows what paqmd knows: routers, flows, allowances, refused
 * messages; and follows it live. Asks over paqmd's control socket.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"

static const char usage[] =
	"Usage: paqmctl [OPTION]... [COMMAND]\n"
	"Show what the P-AQM feedback daemon knows.\n"
	"\n"
	"Commands:\n"
	"  show     routers, flows and statistics (default)\n"
	"  flows    registered media flows and their allowances\n"
	"  routers  routers that have sent believed messages\n"
	"  stats    counters, among them refused messages by reason\n"
	"  watch    one line per message, refusal and change of a flow, until interrupted\n"
	"\n"
	"Options:\n"
	"      --control PATH  socket of paqmd (default: $PAQM_CONTROL or\n"
	"                      " CTL_PATH ")\n"
	"  -j, --json          JSON instead of text; one object per line with watch\n"
	"  -h, --help          print this and exit\n"
	"  -V, --version       print the version and exit\n";

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

static long long integer(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

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

/* An ECF value: a factor, or an increase in bit/s. */
static const char *ecf(double v, char buf[24])
{
	char r[24];

	if (v <= 1)
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
		       str(r, "address"), str(r, "router_id"), integer(r, "age_ms"),
		       ecf(number(r, "ecf"), b1), rate(number(r, "erf_bps"), b2),
		       number(r, "qdelay_ms"), integer(r, "flows"), 100 * number(r, "utilisation"),
		       integer(r, "accepted"), integer(r, "refused"), flags(r, b3));
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

static void print_stats(const json_t *s)
{
	const json_t *ifaces = json_object_get(s, "interfaces");
	const char *reason;
	json_t *n;
	size_t i;

	printf("paqmd %s, up %.1f s, uses %s, %lld clients\n", str(s, "version"),
	       number(s, "uptime_ms") / 1000, str(s, "use"), integer(s, "clients"));
	for (i = 0; i < json_array_size(ifaces); i++) {
		const json_t *f = json_array_get(ifaces, i);

		printf("interface %s: %s, %lld packets, %lld lost\n", str(f, "name"),
		       json_is_true(json_object_get(f, "up")) ? "up" : "gone",
		       integer(f, "received"), integer(f, "dropped"));
	}
	printf("media packets %lld (%lld ignored); messages accepted %lld, refused %lld\n",
	       integer(s, "media_packets"), integer(s, "media_ignored"), integer(s, "accepted"),
	       integer(s, "refused_total"));
	json_object_foreach(json_object_get(s, "refused"), reason, n) if (json_integer_value(n))
		printf("  refused %-14s %lld\n", reason, (long long)json_integer_value(n));
	if (integer(s, "bad_records") || integer(s, "peers_refused"))
		printf("bad records %lld, peers refused %lld\n", integer(s, "bad_records"),
		       integer(s, "peers_refused"));
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

static void print_event(const json_t *e)
{
	const char *what = str(e, "event");
	char b1[24], b2[24], b3[24], b4[64];

	print_time(integer(e, "t_ns"));
	if (!strcmp(what, "accepted")) {
		printf("%s %s seq %lld %s rate %s -> %s may send %s (%s), delay %.1f ms, %s\n",
		       str(e, "address"), str(e, "router_id"), integer(e, "seq"),
		       ecf(number(e, "ecf"), b1), rate(number(e, "erf_bps"), b2), str(e, "flow"),
		       rate(number(e, "rate_bps"), b3), str(e, "cause"), number(e, "qdelay_ms"),
		       flags(e, b4));
	} else if (!strcmp(what, "refused")) {
		printf("%s %s refused: %s (%lld so far)\n", str(e, "address"), str(e, "router_id"),
		       str(e, "reason"), integer(e, "total"));
	} else if (!strcmp(what, "lost")) {
		printf("%lld events lost: this terminal is too slow\n", integer(e, "count"));
	} else {
		printf("%s %s", what, str(e, "flow"));
		if (integer(e, "rate_bps"))
			printf(", may send %s", rate(number(e, "rate_bps"), b1));
		putchar('\n');
	}
}

static int ask(const char *path, const char *cmd)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char line[64];
	int fd, len;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "paqmctl: socket path '%s' is too long\n", path);
		return -1;
	}
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		fprintf(stderr, "paqmctl: cannot connect to %s: %s\n", path, strerror(errno));
		if (errno == EACCES || errno == EPERM)
			fputs("paqmctl: run it as root or as a member of paqmd's --group\n",
			      stderr);
		else
			fputs("paqmctl: is paqmd running, with the same --control path?\n", stderr);
		return -1;
	}
	len = snprintf(line, sizeof(line), "{\"cmd\": \"%s\"}\n", cmd);
	if (send(fd, line, (size_t)len, MSG_NOSIGNAL) != len) {
		fprintf(stderr, "paqmctl: paqmd does not let us in: %s\n", strerror(errno));
		return -1;
	}
	return fd;
}

/* Print one answer or event. Return: false if it is a failure. */
static bool print_line(const char *line, bool json, bool events)
{
	json_error_t err;
	json_t *o = json_loads(line, 0, &err);
	const json_t *part;

	if (!o) {
		fprintf(stderr, "paqmctl: paqmd sent what is not JSON: %s\n", err.text);
		return false;
	}
	if (json_is_false(json_object_get(o, "ok"))) {
		fprintf(stderr, "paqmctl: paqmd refuses: %s\n", str(o, "error"));
		json_decref(o);
		return false;
	}
	if (json) {
		fputs(line, stdout);
	} else if (events) {
		if (json_object_get(o, "event"))
			print_event(o);
	} else {
		part = json_object_get(o, "routers");
		if (part)
			print_routers(part);
		part = json_object_get(o, "flows");
		if (part)
			print_flows(part);
		part = json_object_get(o, "stats");
		if (part)
			print_stats(part);
	}
	json_decref(o);
	return true;
}

static int converse(const char *path, const char *cmd, bool json)
{
	bool watch = !strcmp(cmd, "watch"), got = false;
	int fd = ask(path, cmd), err = 0;
	char *line = NULL;
	size_t size = 0;
	FILE *in;

	if (fd < 0)
		return 1;
	in = fdopen(fd, "r");
	if (!in)
		return 1;
	while (!err && (watch || !got) && getline(&line, &size, in) > 0) {
		err = !print_line(line, json, watch);
		got = true;
		/* Someone may be reading along; and stop when he does not. */
		if (fflush(stdout))
			err = 1;
	}
	if (!err && (watch || !got)) {
		fputs(got ? "paqmctl: paqmd has ended the connection\n"
			  : "paqmctl: paqmd closed the connection without an answer\n",
		      stderr);
		err = 1;
	}
	free(line);
	fclose(in);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"control", required_argument, NULL, 'c'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	static const char *const cmds[] = {"show", "flows", "routers", "stats", "watch"};
	const char *path = getenv("PAQM_CONTROL"), *cmd = "show";
	bool json = false;
	size_t i;
	int opt;

	if (!path || !*path)
		path = CTL_PATH;
	while ((opt = getopt_long(argc, argv, "jhV", longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			path = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'V':
			puts("paqmctl " PAQM_VERSION);
			return 0;
		default:
			fputs("Try 'paqmctl --help'.\n", stderr);
			return 2;
		}
	}
	if (optind < argc)
		cmd = argv[optind++];
	for (i = 0; i < sizeof(cmds) / sizeof(cmds[0]) && strcmp(cmds[i], cmd); i++)
		;
	if (i == sizeof(cmds) / sizeof(cmds[0]) || optind < argc) {
		fprintf(stderr,
			"paqmctl: '%s' is one command too many or unknown; "
			"try 'paqmctl --help'\n",
			optind < argc ? argv[optind] : cmd);
		return 2;
	}
	return converse(path, cmd, json);
}
