// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-meet: a rendezvous for the two ends of a call that both are behind NAT. It joins two
 * connections that name the same meeting (words.h), and copies bytes between them from then on
 * (serve.h). These are the ends' own TLS, with a key that it does not have.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"
#include "feedback-daemon/host/notify.h"
#include "feedback-daemon/host/sandbox.h"
#include "streamer/meet/room.h"
#include "streamer/meet/serve.h"

#define MOST 1024
#define PER_ADDRESS 32
#define LISTENERS 8
#define BACKLOG 128
#define SPARE_FDS 32
#define KERNEL_BUFFER 16384 /* each way; left alone, they grow to megabytes */

/* A host that has vanished is noticed within two minutes, and by what it does not take in 20 s. */
#define KEEP_IDLE_S 60
#define KEEP_EVERY_S 15
#define KEEP_TIMES 4
#define TAKEN_MS 20000

static const char usage[] =
	"Usage: paqm-meet [OPTION]...\n"
	"A rendezvous for calls between hosts behind NAT (paqm-streamer call --meet).\n"
	"\n"
	"  -l, --listen ADDR[:PORT]  where (default: all addresses, port 5091); ADDR may be a "
	"name,\n"
	"                            an IPv6 address in brackets\n"
	"      --most N              connections at once, 2 to 4096 (default: 1024)\n"
	"      --per-address N       of these from one IPv4 address or IPv6 /64 (default: 32)\n"
	"      --user USER           user to run as when started as root (default: nobody)\n"
	"      --sandbox=no          do not restrict paqm-meet's system calls\n"
	"  -h, --help                print this help and exit\n"
	"  -V, --version             print the version and exit\n"
	"\n"
	"Prints counters as JSON when it ends. See paqm-meet(8).\n";

static int listener[LISTENERS], listeners;
static int most = MOST, per_address = PER_ADDRESS;
static const char *host, *port, *user_name = "nobody"; /* NULL: all addresses, the usual port */
static bool sandboxed = true;

static bool number(const char *option, const char *text, int least, int top, int *out)
{
	char *end;
	long n = strtol(text, &end, 10);

	*out = (int)n;
	if (*text && !*end && n >= least && n <= top)
		return true;
	log_line("%s %s: must be %d to %d", option, text, least, top);
	return false;
}

/* "ADDR", "ADDR:PORT", "[ADDR]:PORT", a bare IPv6 address: @text gets the one, the other is
 * returned. */
static char *split(char *text)
{
	char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');

	if (text[0] == '[' && bracket) {
		if (bracket[1] && bracket[1] != ':')
			return bracket; /* is no port */
		memmove(text, text + 1, strlen(text));
		bracket[-1] = 0;
		return bracket[0] == ':' ? bracket + 1 : NULL;
	}
	if (!colon || strchr(text, ':') != colon)
		return NULL;
	*colon = 0;
	return colon + 1;
}

/* Return: false after having logged what is wrong. */
static bool listen_option(char *text)
{
	int n;

	/* a script's empty variable would open it to all, and of two only the last would count */
	if (!*text || host || port) {
		log_line("--listen '%s': must be one address", text);
		return false;
	}
	port = split(text);
	host = *text ? text : NULL;
	return !port || number("--listen: the port", port, 1, 65535, &n);
}

/* Return: false after having logged what is wrong. */
static bool options(int argc, char **argv)
{
	enum { OPT_USER = 256, OPT_SANDBOX, OPT_MOST, OPT_PER_ADDRESS };
	static const struct option known[] = {
		{"listen", required_argument, NULL, 'l'},
		{"most", required_argument, NULL, OPT_MOST},
		{"per-address", required_argument, NULL, OPT_PER_ADDRESS},
		{"user", required_argument, NULL, OPT_USER},
		{"sandbox", required_argument, NULL, OPT_SANDBOX},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int o;

	while ((o = getopt_long(argc, argv, "l:hV", known, NULL)) >= 0) {
		switch (o) {
		case 'l':
			if (!listen_option(optarg))
				return false;
			break;
		case OPT_MOST:
			if (!number("--most", optarg, 2, ROOM_MOST, &most))
				return false;
			break;
		case OPT_PER_ADDRESS:
			if (!number("--per-address", optarg, 2, ROOM_MOST, &per_address))
				return false;
			break;
		case OPT_USER:
			user_name = optarg;
			break;
		case OPT_SANDBOX:
			if (sandbox_option(optarg, &sandboxed))
				return false;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'V':
			puts("paqm-meet " PAQM_VERSION);
			exit(0);
		default:
			return false;
		}
	}
	if (optind == argc)
		return true;
	log_line("unexpected argument '%s'; see 'paqm-meet --help'", argv[optind]);
	return false;
}

static bool listen_at(const struct addrinfo *a)
{
	const int on = 1, buffer = KERNEL_BUFFER, idle = KEEP_IDLE_S, every = KEEP_EVERY_S,
		  times = KEEP_TIMES;
	const unsigned int taken = TAKEN_MS;
	int err, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	/* what it takes inherits these */
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    (a->ai_family != AF_INET6 ||
	     !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) &&
	    !setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) &&
	    !setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) &&
	    !setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) &&
	    !setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every)) &&
	    !setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times)) &&
	    !setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &taken, sizeof(taken)) &&
	    !bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, BACKLOG)) {
		listener[listeners++] = fd;
		return true;
	}
	err = errno;
	close(fd);
	errno = err;
	return false;
}

static bool open_listeners(void)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *all = NULL, *a;
	const char *why = NULL, *service;
	char usual[8];
	int err;

	snprintf(usual, sizeof(usual), "%d", MEET_PORT);
	service = port ? port : usual;
	err = getaddrinfo(host, service, &hints, &all);
	if (err)
		why = gai_strerror(err);
	for (a = all; a && !err && !why && listeners < LISTENERS; a = a->ai_next)
		/* a host without IPv6 listens by IPv4 */
		if (!listen_at(a) && errno != EAFNOSUPPORT && !(!host && errno == EADDRNOTAVAIL))
			why = strerror(errno);
	if (!why && !listeners)
		why = "there is no such address";
	if (why)
		log_line("cannot listen on %s, port %s: %s; give --listen ADDR:PORT",
			 host ? host : "all addresses", service, why);
	if (all)
		freeaddrinfo(all);
	return !why;
}

static bool enough_files(void)
{
	rlim_t wanted = (rlim_t)most + SPARE_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return false;
	if (limit.rlim_cur >= wanted)
		return true;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (limit.rlim_cur < wanted || setrlimit(RLIMIT_NOFILE, &limit)) {
		log_line("--most %d needs %llu open files, but only %llu are allowed: raise the "
			 "limit (LimitNOFILE), or lower --most",
			 most, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct sandbox_user user;
	int signals, status;
	sigset_t set;

	log_name = "paqm-meet";
	log_open();
	signal(SIGPIPE, SIG_IGN); /* of the log */
	if (!options(argc, argv))
		return 2;
	if (!open_listeners())
		return 1;
	if (!enough_files())
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0 || !serve_begin(signals, listener, listeners, most, per_address)) {
		log_line("cannot begin: %s", strerror(errno));
		return 1;
	}
	notify_open();
	if (sandbox_user(user_name, &user) || sandbox_drop(&user, NULL, SANDBOX_NO_CAP) ||
	    (sandboxed && sandbox_filter(SANDBOX_MEET, -1)))
		return 1;
	status = serve_run();
	serve_counters();
	return status;
}
