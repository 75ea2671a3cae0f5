// SPDX-License-Identifier: GPL-2.0
/*
 * Loads of a scenario that need no encoder, and their receivers. Run inside a lab guest, where time
 * is virtual: a sender keeps its schedule to the nanosecond and waiting costs nothing.
 *
 *	load udp ...	RTP flows at a rate of their own, deaf to the network: floods, audio
 *	load idle ...	RTP flows of three or four packets each
 *	load web ...	short TCP connections, this many a second; --lasting: one for all, with what
 *			each would carry at regular times: a player, a chat, telemetry
 *	load sink ...	receives UDP and tells what came, per port
 *	load websink ..	receives the connections
 *
 * Rates and sizes are those of IP packets. All random choices come from --seed. Each ends with one
 * JSON object on standard output.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "testbed/guest/load.h"

void sleep_until(int64_t when)
{
	struct timespec t = {when / NS, when % NS};

	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	if (host && inet_pton(AF_INET, host, &a.sin_addr) != 1)
		die("--to %s: no IPv4 address", host);
	return a;
}

void must_bind(int fd, int port)
{
	struct sockaddr_in a = address(NULL, port);

	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("port %d: %s", port, strerror(errno));
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"to", 1, NULL, 't'},	      {"port", 1, NULL, 'p'},
		{"ports", 1, NULL, 'P'},      {"flows", 1, NULL, 'n'},
		{"size", 1, NULL, 'z'},	      {"type", 1, NULL, 'k'},
		{"rate", 1, NULL, 'r'},	      {"off-rate", 1, NULL, 'R'},
		{"on-ms", 1, NULL, 'o'},      {"off-ms", 1, NULL, 'O'},
		{"burst-ms", 1, NULL, 'b'},   {"ports-per-s", 1, NULL, 'c'},
		{"ssrc-per-s", 1, NULL, 's'}, {"ssrcs", 1, NULL, 'S'},
		{"ect", 1, NULL, 'e'},	      {"per-s", 1, NULL, 'w'},
		{"low", 1, NULL, 'l'},	      {"high", 1, NULL, 'h'},
		{"pareto", 1, NULL, 'q'},     {"algorithm", 1, NULL, 'a'},
		{"late-ms", 1, NULL, 'L'},    {"epoch", 1, NULL, 'E'},
		{"from-ns", 1, NULL, 'f'},    {"until-ns", 1, NULL, 'u'},
		{"seed", 1, NULL, 'x'},	      {"log", 1, NULL, 'g'},
		{"lasting", 0, NULL, 'i'},    {0}};
	uint64_t seed = 1;
	int option, i;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't':
			o->to = optarg;
			break;
		case 'p':
			o->port = (int)number("port", optarg, 1, 65535);
			break;
		case 'P':
			o->ports = (int)number("ports", optarg, 1, PORTS_MAX);
			break;
		case 'n':
			o->flows = (int)number("flows", optarg, 1, FLOWS_MAX);
			break;
		case 'z':
			o->size = (int)number("size", optarg, LEAST, MOST);
			break;
		case 'k':
			o->kind = (int)number("type", optarg, 0, 127);
			break;
		case 'r':
			o->rate = number("rate", optarg, 1, 1e12);
			break;
		case 'R':
			o->off_rate = number("off-rate", optarg, 0, 1e12);
			break;
		case 'o':
			o->on_ms = number("on-ms", optarg, 1, 1e6);
			break;
		case 'O':
			o->off_ms = number("off-ms", optarg, 0, 1e6);
			break;
		case 'b':
			o->burst_ms = number("burst-ms", optarg, 0, 1e6);
			break;
		case 'c':
			o->ports_per_s = number("ports-per-s", optarg, 0, 1e4);
			break;
		case 's':
			o->ssrc_per_s = number("ssrc-per-s", optarg, 0, 1e4);
			break;
		case 'S':
			o->ssrcs = (int)number("ssrcs", optarg, 1, SSRCS_MAX);
			break;
		case 'e':
			o->ect = (int)number("ect", optarg, 0, 3);
			break;
		case 'w':
			o->per_s = number("per-s", optarg, 0.001, 1e4);
			break;
		case 'l':
			o->low = (int)number("low", optarg, 1, 1e8);
			break;
		case 'h':
			o->high = (int)number("high", optarg, 1, 1e8);
			break;
		case 'q':
			o->pareto = number("pareto", optarg, 1.01, 10);
			break;
		case 'a':
			o->algorithm = optarg;
			break;
		case 'L':
			o->late_ms = number("late-ms", optarg, 0, 1e6);
			break;
		case 'E': /* what --from-ns and --until-ns count from */
			o->epoch = strtoll(optarg, NULL, 10);
			break;
		case 'f':
			o->from = strtoll(optarg, NULL, 10);
			break;
		case 'u':
			o->until = strtoll(optarg, NULL, 10);
			break;
		case 'x':
			seed = strtoull(optarg, NULL, 10);
			break;
		case 'g':
			o->log = optarg;
			break;
		case 'i':
			o->lasting = true;
			break;
		default:
			exit(2);
		}
	}
	if (o->until <= o->from)
		die("--until-ns must be later than --from-ns");
	if (o->high < o->low)
		die("--high is below --low");
	o->from += o->epoch;
	o->until += o->epoch;
	o->random[0] = 0x330E;
	o->random[1] = (unsigned short)seed;
	o->random[2] = (unsigned short)(seed >> 16 ^ 0xA5A5);
	for (i = 0; i < 10; i++) /* close seeds begin alike */
		erand48(o->random);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct options *o);
	} modes[] = {{"udp", udp_main},
		     {"idle", idle_main},
		     {"web", web_main},
		     {"sink", sink_main},
		     {"websink", websink_main}};
	struct options o = {.to = "127.0.0.1",
			    .algorithm = "cubic",
			    .log = "web.csv",
			    .port = 5000,
			    .ports = 1,
			    .flows = 1,
			    .size = 1200,
			    .kind = 96,
			    .ssrcs = 1,
			    .low = 30000,
			    .high = 60000,
			    .rate = 1e6,
			    .per_s = 1};
	size_t i;

	prctl(PR_SET_TIMERSLACK, 1);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (argc > 1 && !strcmp(argv[1], modes[i].name)) {
			parse(&o, argc - 1, argv + 1);
			return modes[i].run(&o);
		}
	}
	fputs("usage: load udp|idle|web|sink|websink OPTION...\n", stderr);
	return 2;
}
