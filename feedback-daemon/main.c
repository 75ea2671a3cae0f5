// SPDX-License-Identifier: GPL-2.0
/*
 * paqmd: receives the feedback messages of P-AQM routers on a host that sends
 * media, proves that they are about packets which this host has sent, and hands
 * every media sender the rate it may use.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "capture.h"
#include "ctl.h"
#include "ipc_server.h"
#include "log.h"

static const char usage[] =
	"Usage: paqmd [OPTION]...\n"
	"Receive the feedback of P-AQM routers and tell local media senders their rates.\n"
	"\n"
	"  -i, --interface IFACE  capture there; may be given up to 8 times (default: any)\n"
	"      --socket PATH      socket for media senders (default: $PAQM_SOCKET or\n"
	"                         " PAQM_IPC_PATH ")\n"
	"      --control PATH     socket for paqmctl (default: $PAQM_CONTROL or\n"
	"                         " CTL_PATH ")\n"
	"      --group GROUP      let members of GROUP use both sockets, beside root and\n"
	"                         the user paqmd runs as\n"
	"      --use erf|ecf      believe the absolute rate of a message (erf, default) or\n"
	"                         its relative value (ecf)\n"
	"      --keys FILE        keys of routers; messages of those must carry a valid tag\n"
	"      --require-auth     believe no router without a key\n"
	"  -v, --verbose          log accepted messages and clients too\n"
	"  -h, --help             print this and exit\n"
	"  -V, --version          print the version and exit\n"
	"\n"
	"Needs CAP_NET_RAW. See paqmd(8), paqmctl(1).\n";

struct options {
	const char *iface[REQUEST_IFACES];
	unsigned int ifaces;
	const char *socket, *control, *keys;
	enum allow_use use;
	gid_t group;
	bool has_group, require_auth;
};

static bool stop;
static struct daemon the_daemon; /* large: the flow table is inside */

static const char *env_or(const char *name, const char *otherwise)
{
	const char *v = getenv(name);

	return v && *v ? v : otherwise;
}

static int parse(int argc, char **argv, struct options *o)
{
	enum { OPT_SOCKET = 256, OPT_CONTROL, OPT_GROUP, OPT_USE, OPT_KEYS, OPT_AUTH };
	static const struct option longs[] = {
		{"interface", required_argument, NULL, 'i'},
		{"socket", required_argument, NULL, OPT_SOCKET},
		{"control", required_argument, NULL, OPT_CONTROL},
		{"group", required_argument, NULL, OPT_GROUP},
		{"use", required_argument, NULL, OPT_USE},
		{"keys", required_argument, NULL, OPT_KEYS},
		{"require-auth", no_argument, NULL, OPT_AUTH},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	const struct group *g;
	int opt;

	while ((opt = getopt_long(argc, argv, "i:vhV", longs, NULL)) != -1) {
		switch (opt) {
		case 'i':
			if (o->ifaces == REQUEST_IFACES || strlen(optarg) > 31) {
				log_line("-i %s: at most %d interfaces, names of at most 31 bytes",
					 optarg, REQUEST_IFACES);
				return 2;
			}
			o->iface[o->ifaces++] = optarg;
			break;
		case OPT_SOCKET:
			o->socket = optarg;
			break;
		case OPT_CONTROL:
			o->control = optarg;
			break;
		case OPT_GROUP:
			g = getgrnam(optarg);
			if (!g) {
				log_line("--group %s: no such group; see groupadd(8)", optarg);
				return 2;
			}
			o->group = g->gr_gid;
			o->has_group = true;
			break;
		case OPT_USE:
			if (strcmp(optarg, "erf") && strcmp(optarg, "ecf")) {
				log_line("--use %s: must be erf or ecf", optarg);
				return 2;
			}
			o->use = strcmp(optarg, "erf") ? ALLOW_USE_ECF : ALLOW_USE_ERF;
			break;
		case OPT_KEYS:
			o->keys = optarg;
			break;
		case OPT_AUTH:
			o->require_auth = true;
			break;
		case 'v':
			log_verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'V':
			puts("paqmd " PAQM_VERSION);
			exit(0);
		default:
			fputs("Try 'paqmd --help'.\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		log_line("unexpected argument '%s'; try 'paqmd --help'", argv[optind]);
		return 2;
	}
	if (o->require_auth && !o->keys) {
		log_line("--require-auth: no message can be believed without --keys FILE");
		return 2;
	}
	if (!o->ifaces)
		o->iface[o->ifaces++] = "any";
	return 0;
}

static void signal_ready(struct source *s, uint32_t events)
{
	struct signalfd_siginfo si;

	(void)events;
	if (read(s->fd, &si, sizeof(si)) == sizeof(si)) {
		log_line("ending on signal %u", si.ssi_signo);
		stop = true;
	}
}

static void timer_ready(struct source *s, uint32_t events)
{
	uint64_t n;

	/* The work is done before the loop waits again. */
	(void)events;
	if (read(s->fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_line("timer: %s", strerror(errno));
}

/* Put silent routers out of force and tell those concerned. */
static void expired(void *data, struct flow *f)
{
	struct daemon *d = data;

	log_limited(LOG_CLASS_RATE, "flow %llx: a router has fallen silent, %u remain",
		    (unsigned long long)f->cookie, f->rate.routers);
	ctl_event_flow(d, "expired", f);
	ipc_push(d, f);
}

static int load_keys(struct engine *e, const char *path)
{
	struct keyring ring;
	char error[512];
	int err = keys_load(path, &ring, error, sizeof(error));

	if (err)
		log_line("%s", error);
	else
		engine_set_keys(e, &ring);
	keys_wipe(&ring);
	return err;
}

static void arm(int fd, uint64_t at_ns)
{
	struct itimerspec t = {0};

	if (at_ns != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(at_ns / 1000000000ULL);
		t.it_value.tv_nsec = (long)(at_ns % 1000000000ULL);
	}
	timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void run(struct daemon *d, int timer_fd)
{
	uint64_t armed = UINT64_MAX;

	while (!stop) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC), next;
		struct epoll_event ev;
		struct source *s;

		engine_expire_all(&d->engine, now, expired, d);
		next = paqm_min64(engine_next(&d->engine), capture_retry(d, now));
		if (d->filter_stale) {
			capture_filter(d);
			d->filter_stale = false;
			ipc_flush(d);
		}
		if (next != armed) {
			arm(timer_fd, next);
			armed = next;
		}
		/* One at a time: a handler may free what another event is about. */
		if (epoll_wait(d->epfd, &ev, 1, -1) < 1)
			continue;
		s = ev.data.ptr;
		s->ready(s, ev.events);
	}
}

int main(int argc, char **argv)
{
	struct options o = {.use = ALLOW_USE_ERF};
	struct daemon *d = &the_daemon;
	struct engine_params params = engine_defaults;
	struct source sig = {.ready = signal_ready}, timer = {.ready = timer_ready};
	uint8_t key[PAQM_SIPHASH_KEY];
	sigset_t set;
	int err;

	o.socket = env_or("PAQM_SOCKET", PAQM_IPC_PATH);
	o.control = env_or("PAQM_CONTROL", CTL_PATH);
	err = parse(argc, argv, &o);
	if (err)
		return err;
	params.use = o.use;
	params.require_auth = o.require_auth;
	d->group = o.group;
	d->has_group = o.has_group;
	d->start_ns = clock_ns(CLOCK_MONOTONIC);
	if (getrandom(key, sizeof(key), 0) != sizeof(key)) {
		log_line("no random numbers from the kernel: %s", strerror(errno));
		return 1;
	}
	engine_init(&d->engine, &params, key);
	if (o.keys && load_keys(&d->engine, o.keys))
		return 1;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	d->epfd = epoll_create1(EPOLL_CLOEXEC);
	sig.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->epfd < 0 || sig.fd < 0 || timer.fd < 0 || loop_watch(d, &sig, EPOLLIN) ||
	    loop_watch(d, &timer, EPOLLIN)) {
		log_line("cannot set up the event loop: %s", strerror(errno));
		return 1;
	}

	err = 1;
	if (!capture_open(d, o.iface, o.ifaces) && !ipc_open(d, o.socket) &&
	    !ctl_open(d, o.control)) {
		log_line("ready: version %s, %s mode, senders at %s, paqmctl at %s", PAQM_VERSION,
			 o.use == ALLOW_USE_ERF ? "erf" : "ecf", o.socket, o.control);
		run(d, timer.fd);
		err = 0;
	}
	ipc_close(d);
	ctl_close(d);
	capture_close(d);
	engine_free(&d->engine);
	return err;
}
