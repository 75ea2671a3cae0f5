// SPDX-License-Identifier: GPL-2.0
/*
 * paqmctl: shows the state of paqmd (routers, flows, allowances, refused
 * messages) and follows it live, over paqmd's control socket.
 */
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

#include "feedback-daemon/host/stdio_fill.h"
#include "feedback-daemon/sockets/ctl.h"
#include "feedback-daemon/sockets/request.h"
#include "feedback-daemon/paqmctl/host_key.h"
#include "feedback-daemon/paqmctl/metrics.h"
#include "feedback-daemon/paqmctl/print.h"

static const char usage[] =
	"Usage: paqmctl [OPTION]... [COMMAND]\n"
	"Show the state of the P-AQM feedback daemon.\n"
	"\n"
	"Commands:\n"
	"  show          routers, flows and statistics (default)\n"
	"  flows         registered media flows and their allowances\n"
	"  routers       routers whose messages were accepted\n"
	"  stats         counters, including refused messages by reason\n"
	"  why           the reason for each flow's current rate\n"
	"  metrics       all of this as OpenMetrics text\n"
	"  watch         print a line per message, refusal and flow change\n"
	"  capture FILE  write incoming messages, accepted or not, as pcap\n"
	"  reload        make paqmd reload its configuration\n"
	"  host-key ADDRESS\n"
	"                derive the keys-file line of the host at ADDRESS from the\n"
	"                router's on standard input; does not contact paqmd\n"
	"\n"
	"Options:\n"
	"      --control PATH  socket of paqmd (default: $PAQM_CONTROL or\n"
	"                      " CTL_PATH ")\n"
	"      --count N       watch, capture: stop after N events (default: when\n"
	"                      interrupted)\n"
	"  -j, --json          JSON instead of text; one object per line with watch and\n"
	"                      capture\n"
	"  -h, --help          print this help and exit\n"
	"  -V, --version       print the version and exit\n";

/* What was asked for. */
static struct {
	const char *control;
	const char *file; /* of capture */
	bool json;
	unsigned long count; /* of events; 0: no end */
} opt;

/* Ask @cmd, for the flows from slot @from on. */
static bool ask(int fd, const char *cmd, long long from)
{
	char line[96];
	int len = snprintf(line, sizeof(line), "{\"cmd\": \"%s\", \"from\": %lld}\n", cmd, from);

	if (send(fd, line, (size_t)len, MSG_NOSIGNAL) == len)
		return true;
	fprintf(stderr, "paqmctl: paqmd refused the connection: %s\n", strerror(errno));
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
	pcap_t *raw = pcap_open_dead_with_tstamp_precision(DLT_RAW, REQUEST_PACKET_MAX,
							   PCAP_TSTAMP_PRECISION_NANO);

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
	unsigned char packet[REQUEST_PACKET_MAX];
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
		fprintf(stderr, "paqmctl: the answer of paqmd is not JSON: %s\n", err.text);
		return NULL;
	}
	if (!json_is_false(json_object_get(o, "ok")))
		return o;
	fprintf(stderr, "paqmctl: paqmd refuses: %s\n", str(o, "error"));
	json_decref(o);
	return NULL;
}

/* Append the flows of the next page. */
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

/* How long to wait for a line; 0: for ever. */
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
			"paqmctl: %s: no answer for %d s: paqmd hangs or is out of files; see "
			"its log\n",
			opt.control, ANSWER_S);
	else if (ferror(in))
		fprintf(stderr, "paqmctl: %s: %s\n", opt.control, strerror(errno));
}

/* One answer, of as many pages as it takes. Return: whether it was complete. */
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

/* Print events until there are enough or paqmd ends. Return: whether there were enough. */
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
		/* An old capture is not overwritten unless there is something to write. */
		if (opt.file && !dump && !dump_begin()) {
			json_decref(o);
			break;
		}
		show(c, o);
		json_decref(o);
		if (!lines++)
			set_patience(fileno(in), 0);
		/* Someone may be reading along; stop when they do not. */
		if (fflush(stdout))
			break;
	}
	free(line);
	if (!lines)
		say_silent(in);
	else if (feof(in))
		fputs("paqmctl: paqmd closed the connection\n", stderr);
	return opt.count && lines > opt.count;
}

static int converse(const struct command *c)
{
	int fd = connect_to(opt.control);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	bool good;

	if (!in || !ask(fd, c->cmd, 0))
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

	stdio_fill();
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
		fputs("paqmctl: host-key: needs one address, the one that routers see the host "
		      "at\n",
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
		fprintf(stderr, "paqmctl: unexpected argument '%s'\n", argv[optind]);
		return 2;
	}
	if (opt.file && opt.json && !strcmp(opt.file, "-")) {
		fputs("paqmctl: capture: packets and JSON cannot both go to stdout; name a file\n",
		      stderr);
		return 2;
	}
	if (opt.count && !commands[i].events) {
		fprintf(stderr, "paqmctl: --count is for watch and capture, not for %s\n", name);
		return 2;
	}
	return converse(&commands[i]);
}
