// SPDX-License-Identifier: GPL-2.0
/*
 * paqmctl: shows what paqmd knows: routers, flows, allowances, refused
 * messages; and follows it live. Asks over paqmd's control socket.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "keys.h"
#include "metrics.h"

static const char usage[] =
	"Usage: paqmctl [OPTION]... [COMMAND]\n"
	"Show what the P-AQM feedback daemon knows.\n"
	"\n"
	"Commands:\n"
	"  show          routers, flows and statistics (default)\n"
	"  flows         registered media flows and their allowances\n"
	"  routers       routers that have sent believed messages\n"
	"  stats         counters, among them refused messages by reason\n"
	"  why           the reason for the present rate of each flow\n"
	"  metrics       all of it as OpenMetrics text\n"
	"  watch         one line per message, refusal and change of a flow\n"
	"  capture FILE  write the messages that come in, believed or not, as pcap\n"
	"  reload        let paqmd read its configuration again\n"
	"  host-key ADDRESS\n"
	"                make the line of a keys file for the host at ADDRESS out of a\n"
	"                router's, which is read from standard input; asks no paqmd\n"
	"\n"
	"Options:\n"
	"      --control PATH  socket of paqmd (default: $PAQM_CONTROL or\n"
	"                      " CTL_PATH ")\n"
	"      --count N       watch, capture: end after N events (default: when\n"
	"                      interrupted)\n"
	"  -j, --json          JSON instead of text; one object per line with watch and\n"
	"                      capture\n"
	"  -h, --help          print this and exit\n"
	"  -V, --version       print the version and exit\n";

/* What was asked for. */
static struct {
	const char *control;
	const char *file; /* of capture */
	bool json;
	unsigned long count; /* of events; 0: no end */
} opt;

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
		       json_is_true(json_object_get(f, "up")) ? "up" : "gone",
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
		printf("media of flows without a source address, from no socket of their user: "
		       "%lld\n",
		       integer(s, "media_others"));
	print_reasons(s, "refused", "refused");
	print_users(json_object_get(s, "users"));
	print_reasons(s, "flows_refused", "flows refused:");
	print_reasons(s, "clients_refused", "clients refused:");
	print_reasons(s, "controls_refused", "control clients refused:");
	print_reasons(s, "digests_forgotten", "digests forgotten early:");
	if (integer(s, "link_foreign"))
		printf("news of interfaces that were not the kernel's %lld\n",
		       integer(s, "link_foreign"));
	if (integer(s, "bad_records") || integer(s, "peers_refused") || integer(s, "accept_failed"))
		printf("bad records %lld, peers refused %lld, not accepted for want of files or "
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

static void print_event(const json_t *e)
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

/* Ask @cmd, for the flows from slot @from on. */
static bool ask(int fd, const char *cmd, long long from)
{
	char line[96];
	int len = snprintf(line, sizeof(line), "{\"cmd\": \"%s\", \"from\": %lld}\n", cmd, from);

	if (send(fd, line, (size_t)len, MSG_NOSIGNAL) == len)
		return true;
	fprintf(stderr, "paqmctl: paqmd does not let us in: %s\n", strerror(errno));
	return false;
}

static int connect_to(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "paqmctl: socket path '%s' is longer than %zu bytes\n", path,
			sizeof(sa.sun_path) - 1);
		return -1;
	}
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return fd;
	fprintf(stderr, "paqmctl: cannot connect to %s: %s\n", path, strerror(errno));
	if (errno == EACCES || errno == EPERM)
		fputs("paqmctl: run it as root or as a member of paqmd's --group\n", stderr);
	else
		fputs("paqmctl: is paqmd running, with the same --control path?\n", stderr);
	return -1;
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

static void print_show(const json_t *o)
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

static void print_metrics(const json_t *o)
{
	metrics_print(stdout, o);
}

static pcap_dumper_t *dump; /* of capture */

static bool say_unwritten(const char *why)
{
	fprintf(stderr, "paqmctl: cannot write %s: %s\n", opt.file, why);
	return false;
}

/* Packets without a link header, times in nanoseconds. */
static bool dump_begin(void)
{
	FILE *out = strcmp(opt.file, "-") ? fopen(opt.file, "wb") : stdout;
	pcap_t *raw =
		pcap_open_dead_with_tstamp_precision(DLT_RAW, 65535, PCAP_TSTAMP_PRECISION_NANO);

	if (!out || !raw)
		return say_unwritten(strerror(errno));
	dump = pcap_dump_fopen(raw, out);
	if (!dump)
		return say_unwritten(pcap_geterr(raw));
	return !pcap_dump_flush(dump) || say_unwritten(strerror(errno));
}

static void dump_packet(const json_t *o)
{
	const char *hex = json_string_value(json_object_get(o, "ip"));
	long long t_ns = integer(o, "t_ns");
	struct pcap_pkthdr h = {.ts = {.tv_sec = (time_t)(t_ns / 1000000000),
				       .tv_usec = (suseconds_t)(t_ns % 1000000000)}};
	unsigned char packet[512];
	unsigned int byte;

	while (h.len < sizeof(packet) && hex && sscanf(hex + 2 * h.len, "%2x", &byte) == 1)
		packet[h.len++] = (unsigned char)byte;
	h.caplen = h.len;
	pcap_dump((u_char *)dump, &h, packet);
	if (!pcap_dump_flush(dump))
		return;
	say_unwritten(strerror(errno));
	exit(1);
}

static void print_capture(const json_t *o)
{
	if (!json_object_get(o, "event"))
		return;
	if (!strcmp(str(o, "event"), "lost"))
		fprintf(stderr, "paqmctl: %lld messages lost: a flood, or writing is too slow\n",
			integer(o, "count"));
	else
		dump_packet(o);
}

static void print_watch(const json_t *o)
{
	if (json_object_get(o, "event"))
		print_event(o);
}

static void print_nothing(const json_t *o)
{
	(void)o;
}

/* The commands: what paqmd is asked, and how its lines are shown. */
static const struct command {
	const char *name, *cmd;
	void (*print)(const json_t *o);
	bool events; /* lines until interrupted */
} commands[] = {
	{"show", "show", print_show, false},	    {"flows", "flows", print_show, false},
	{"routers", "routers", print_show, false},  {"stats", "stats", print_show, false},
	{"why", "why", print_show, false},	    {"metrics", "show", print_metrics, false},
	{"watch", "watch", print_watch, true},	    {"capture", "capture", print_capture, true},
	{"reload", "reload", print_nothing, false},
};

/* Return: what paqmd has sent in one line, or NULL after having said what is wrong. */
static json_t *parse_line(const char *line)
{
	json_error_t err;
	json_t *o = json_loads(line, 0, &err);

	if (!o) {
		fprintf(stderr, "paqmctl: paqmd sent what is not JSON: %s\n", err.text);
		return NULL;
	}
	if (!json_is_false(json_object_get(o, "ok")))
		return o;
	fprintf(stderr, "paqmctl: paqmd refuses: %s\n", str(o, "error"));
	json_decref(o);
	return NULL;
}

/* Put the flows of the next page behind those of the first. */
static void append(json_t *all, const json_t *page)
{
	static const char *const lists[] = {"flows", "why"};
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_array_extend(json_object_get(all, lists[i]), json_object_get(page, lists[i]));
	if (json_object_get(page, "next"))
		json_object_set(all, "next", json_object_get(page, "next"));
	else
		json_object_del(all, "next");
}

static void show(const struct command *c, const json_t *o)
{
	if (opt.json) {
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
	}
	if (!opt.json || dump)
		c->print(o);
}

#define ANSWER_S 10

/* Wait for a line so long; 0: for ever. */
static void set_patience(int fd, time_t seconds)
{
	const struct timeval t = {.tv_sec = seconds};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

/* Why there is no line. */
static void say_silent(FILE *in)
{
	if (feof(in))
		fputs("paqmctl: paqmd closed the connection without an answer\n", stderr);
	else if (ferror(in) && errno == EAGAIN)
		fprintf(stderr,
			"paqmctl: %s: no answer for %d s: paqmd hangs or may open no more files; "
			"see its log\n",
			opt.control, ANSWER_S);
	else if (ferror(in))
		fprintf(stderr, "paqmctl: %s: %s\n", opt.control, strerror(errno));
}

/* One answer, of as many pages as it takes. Return: whether it was one. */
static bool answer(const struct command *c, int fd, FILE *in)
{
	json_t *all = NULL, *page;
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, in) > 0 && (page = parse_line(line))) {
		if (all)
			append(all, page);
		else
			all = json_incref(page);
		json_decref(page);
		if (!json_object_get(all, "next")) {
			show(c, all);
			json_decref(all);
			free(line);
			return true;
		}
		if (!ask(fd, c->cmd, integer(all, "next")))
			break;
	}
	say_silent(in);
	json_decref(all);
	free(line);
	return false;
}

/* Events, until there were enough or paqmd ends. Return: whether there were enough. */
static bool events(const struct command *c, FILE *in)
{
	unsigned long lines = 0;
	char *line = NULL;
	size_t size = 0;
	json_t *o;

	/* The first line answers the request, events follow. */
	while ((!opt.count || lines <= opt.count) && getline(&line, &size, in) > 0) {
		o = parse_line(line);
		if (!o)
			break;
		show(c, o);
		json_decref(o);
		if (!lines++)
			set_patience(fileno(in), 0);
		/* Someone may be reading along; and stop when he does not. */
		if (fflush(stdout))
			break;
	}
	free(line);
	if (!lines)
		say_silent(in);
	else if (feof(in))
		fputs("paqmctl: paqmd has ended the connection\n", stderr);
	return opt.count && lines > opt.count;
}

static int converse(const struct command *c)
{
	int fd = connect_to(opt.control);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	bool good;

	/* A capture of before is not overwritten for nothing. */
	if (!in || (opt.file && !dump_begin()) || !ask(fd, c->cmd, 0))
		return 1;
	set_patience(fd, ANSWER_S);
	good = c->events ? events(c, in) : answer(c, fd, in);
	if (fflush(stdout)) {
		fprintf(stderr, "paqmctl: cannot write the output: %s\n", strerror(errno));
		good = false;
	}
	fclose(in);
	return good ? 0 : 1;
}

/* The line of a host's keys file out of a router's: who reads that can speak to no other host. */
static int host_key(const char *text)
{
	uint8_t own[PAQM_SIPHASH_KEY];
	char line[KEYS_FILE_MAX];
	static struct keyring ring;
	struct addr addr = {{0}};
	const char *fault;
	unsigned int at, i, b;
	size_t n;

	if (inet_pton(AF_INET, text, addr.b + 12) == 1) {
		addr.b[10] = addr.b[11] = 0xFF;
	} else if (inet_pton(AF_INET6, text, addr.b) != 1) {
		fprintf(stderr,
			"paqmctl: host-key %s: must be the address that routers tell the host at, "
			"IPv4 or IPv6\n",
			text);
		return 2;
	}
	if (isatty(STDIN_FILENO))
		fputs("paqmctl: the router's line: ROUTER-ID|* KEY-ID HEX\n", stderr);
	n = fread(line, 1, sizeof(line), stdin);
	fault = ferror(stdin) ? strerror(errno) : keys_parse(line, n, &ring, &at);
	explicit_bzero(line, sizeof(line));
	if (!fault && !ring.n)
		fault = "no key in it";
	for (i = 0; !fault && i < ring.n; i++)
		if (ring.key[i].host)
			fault = "one of the keys is a host's own already: derive from the router's";
	for (i = 0; !fault && i < ring.n; i++) {
		const struct key *k = &ring.key[i];

		keys_derive(k->bytes, &addr, own);
		if (k->any)
			printf("* %u ", k->id);
		else
			printf("%llx %u ", (unsigned long long)k->router, k->id);
		for (b = 0; b < sizeof(own); b++)
			printf("%02x", own[b]);
		puts(" host");
	}
	explicit_bzero(own, sizeof(own));
	keys_wipe(&ring);
	if (!fault && !fflush(stdout))
		return 0;
	fprintf(stderr, "paqmctl: host-key: standard input: %s\n", fault ? fault : strerror(errno));
	return 1;
}

static bool parse_count(const char *text)
{
	char *end;

	errno = 0;
	opt.count = strtoul(text, &end, 10);
	if (!errno && end != text && !*end && opt.count && text[0] != '-')
		return true;
	fprintf(stderr, "paqmctl: --count %s: must be a number of 1 or more\n", text);
	return false;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"control", required_argument, NULL, 'c'}, {"count", required_argument, NULL, 'n'},
		{"json", no_argument, NULL, 'j'},	   {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	   {0},
	};
	const char *name = "show";
	size_t i;
	int o;

	opt.control = getenv("PAQM_CONTROL");
	if (!opt.control || !*opt.control)
		opt.control = CTL_PATH;
	while ((o = getopt_long(argc, argv, "jhV", longs, NULL)) != -1) {
		switch (o) {
		case 'c':
			opt.control = optarg;
			break;
		case 'n':
			if (!parse_count(optarg))
				return 2;
			break;
		case 'j':
			opt.json = true;
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
		name = argv[optind++];
	if (!strcmp(name, "host-key")) {
		if (argc - optind == 1)
			return host_key(argv[optind]);
		fputs("paqmctl: host-key: name one address: that which routers tell the host at\n",
		      stderr);
		return 2;
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]) && strcmp(commands[i].name, name);
	     i++)
		;
	if (i == sizeof(commands) / sizeof(commands[0])) {
		fprintf(stderr, "paqmctl: unknown command '%s'; try 'paqmctl --help'\n", name);
		return 2;
	}
	if (commands[i].print == print_capture) {
		if (optind == argc) {
			fputs("paqmctl: capture: name the file to write, or - for stdout\n",
			      stderr);
			return 2;
		}
		opt.file = argv[optind++];
	}
	if (optind < argc) {
		fprintf(stderr, "paqmctl: '%s' is one argument too many\n", argv[optind]);
		return 2;
	}
	if (opt.count && !commands[i].events) {
		fprintf(stderr, "paqmctl: --count is for watch and capture, not for %s\n", name);
		return 2;
	}
	return converse(&commands[i]);
}
