// SPDX-License-Identifier: GPL-2.0
/*
 * paqmd: receives the feedback messages of P-AQM routers on a host that sends
 * media, proves that they are about packets which this host has sent, and hands
 * every media sender the rate it may use.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "feedback-daemon/capture/capture.h"
#include "feedback-daemon/sockets/ctl.h"
#include "feedback-daemon/sockets/ipc_server.h"
#include "feedback-daemon/host/keys_file.h"
#include "feedback-daemon/host/log.h"
#include "feedback-daemon/host/owner.h"
#include "feedback-daemon/host/notify.h"
#include "feedback-daemon/capture/offline.h"
#include "feedback-daemon/capture/opener.h"
#include "feedback-daemon/host/sandbox.h"
#include "feedback-daemon/sockets/unixsock.h"

static const char usage[] =
	"Usage: paqmd [OPTION]...\n"
	"Receive feedback from P-AQM routers and pass the rates on to local media senders.\n"
	"\n"
	"  -c, --config FILE      read settings from FILE (default: " CONF_PATH "\n"
	"                         if it exists)\n"
	"      --check-config     check the settings, report mistakes and exit\n"
	"  -i, --interface IFACE  capture on IFACE; up to 8 times (default: any)\n"
	"      --socket PATH      socket for media senders (default: $PAQM_SOCKET or\n"
	"                         " PAQM_IPC_PATH ")\n"
	"      --control PATH     socket for paqmctl (default: $PAQM_CONTROL or\n"
	"                         " CTL_PATH ")\n"
	"      --user USER        user to run as when started as root (default: paqm)\n"
	"      --group GROUP      let members of GROUP register flows and read the state,\n"
	"                         besides root and the user who started paqmd\n"
	"      --use WHAT         follow a message's absolute rate (erf, default) or its\n"
	"                         relative value (ecf); thesis-erf or thesis-ecf: the same as\n"
	"                         published, without protection from their weaknesses\n"
	"      --legacy           also accept ICMP Source Quench without a PAQM object:\n"
	"                         anyone who guesses a flow's ports can forge it\n"
	"      --keys FILE        router keys; messages from these routers need a valid tag\n"
	"      --require-auth     accept no router without a key\n"
	"      --read FILE        replay a capture file; print a line of JSON per message\n"
	"      --flow FLOW        with --read: 'SADDR:PORT DADDR:PORT [ssrc HEX] [floor BPS]\n"
	"                         [ceil BPS]'; repeatable\n"
	"      --flows FILE       with --read: one FLOW per line\n"
	"      --sandbox=no       do not restrict paqmd's system calls\n"
	"  -v, --verbose          also log accepted messages, clients, and messages about\n"
	"                         flows that are not registered\n"
	"  -h, --help             print this help and exit\n"
	"  -V, --version          print the version and exit\n"
	"\n"
	"Needs CAP_NET_RAW. See paqmd(8), paqmd.conf(5), paqmctl(1).\n";

#define SETTINGS_MAX 64
#define OFFLINE_FLOWS 256 /* of the command line; a file may have more */

/* The command line: it overrides the file, also when that is reloaded. */
static struct {
	const char *config; /* NULL: the usual one, which need not exist */
	bool check;
	const char *read, *flows, *flow[OFFLINE_FLOWS];
	unsigned int n_flow;
	struct {
		enum conf_key key;
		const char *value;
	} set[SETTINGS_MAX];
	unsigned int sets;
} line;

static struct daemon the_daemon; /* large: the flow table is inside */

/* Mistakes in the settings are logged; the first one is also kept. */
struct mistakes {
	char *first;
};

static void report(void *data, unsigned int number, const char *why)
{
	const char *path = line.config ? line.config : CONF_PATH;
	struct mistakes *m = data;
	char text[CONF_WHY];

	if (number)
		snprintf(text, sizeof(text), "%.120s:%u: %s", path, number, why);
	else
		snprintf(text, sizeof(text), "%.120s: %s", path, why);
	log_line("%s", text);
	if (m->first && !*m->first)
		strcpy(m->first, text);
}

/* Settings of the file, then of the command line. Return: true if all are right. */
static bool load(struct conf *c, struct mistakes *m)
{
	const char *path = line.config ? line.config : CONF_PATH;
	unsigned int i, wrong;
	uint32_t seen = 0;
	char why[CONF_WHY];

	conf_default(c);
	wrong = conf_load(c, path, line.config, report, m);
	for (i = 0; i < line.sets; i++) {
		if (conf_set(c, line.set[i].key, line.set[i].value, &seen, why))
			continue;
		log_line("--%s", why);
		wrong++;
	}
	if (!strcmp(c->socket, c->control)) {
		snprintf(why, sizeof(why), "socket and control: must be two paths, not both %s",
			 c->socket);
		log_line("%s", why);
		if (m->first && !*m->first)
			strcpy(m->first, why);
		wrong++;
	}
	return !wrong;
}

/* The group whose members may connect. */
static bool find_group(const struct conf *c, gid_t *group, char why[CONF_WHY])
{
	const struct group *g;

	if (!*c->group)
		return true;
	g = getgrnam(c->group);
	if (g)
		*group = g->gr_gid;
	else
		snprintf(why, CONF_WHY, "group %s: does not exist; see groupadd(8)", c->group);
	return g;
}

/* The keys of the settings, if they name any. */
static bool load_keys(const struct conf *c, struct keyring *ring, char why[CONF_WHY])
{
	/* Root becomes that user, who reloads the file later on. */
	const struct passwd *pw = geteuid() ? NULL : getpwnam(c->user);

	ring->n = 0;
	if (*c->keys)
		return !keys_load(c->keys, pw ? pw->pw_uid : geteuid(), ring, why, CONF_WHY);
	if (c->require_auth)
		strcpy(why, "require-auth: without 'keys FILE' no message can be accepted");
	return !c->require_auth;
}

static int parse(int argc, char **argv)
{
	enum { OPT_CHECK = 256, OPT_READ, OPT_FLOW, OPT_FLOWS, OPT_KEYS };
	struct option longs[CONF_KEYS_MAX + 8] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, OPT_CHECK},
		{"read", required_argument, NULL, OPT_READ},
		{"flow", required_argument, NULL, OPT_FLOW},
		{"flows", required_argument, NULL, OPT_FLOWS},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
	};
	int opt, i;

	for (i = 0; i < CONF_KEYS_MAX; i++)
		longs[7 + i] = (struct option){conf_name((enum conf_key)i),
					       conf_is_flag((enum conf_key)i) ? optional_argument
									      : required_argument,
					       NULL, OPT_KEYS + i};
	while ((opt = getopt_long(argc, argv, "c:i:vhV", longs, NULL)) != -1) {
		if (opt == 'i')
			opt = OPT_KEYS + CONF_INTERFACE;
		else if (opt == 'v')
			opt = OPT_KEYS + CONF_VERBOSE;
		if (opt >= OPT_KEYS) {
			if (line.sets == SETTINGS_MAX) {
				log_line("more than %d options", SETTINGS_MAX);
				return 2;
			}
			line.set[line.sets].key = (enum conf_key)(opt - OPT_KEYS);
			line.set[line.sets++].value = optarg ? optarg : "yes";
			continue;
		}
		switch (opt) {
		case 'c':
			line.config = optarg;
			break;
		case OPT_CHECK:
			line.check = true;
			break;
		case OPT_READ:
			line.read = optarg;
			break;
		case OPT_FLOW:
			if (line.n_flow == OFFLINE_FLOWS) {
				log_line("--flow %s: at most %d flows", optarg, OFFLINE_FLOWS);
				return 2;
			}
			line.flow[line.n_flow++] = optarg;
			break;
		case OPT_FLOWS:
			line.flows = optarg;
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
	if ((line.n_flow || line.flows) && !line.read) {
		log_line("--flow and --flows are for --read; senders register live flows");
		return 2;
	}
	return 0;
}

/* Reload the configuration. Clients and allowances are kept; if there is a mistake in it, nothing
 * changes. Return: true, or false with @why filled in.
 */
static bool reload(struct daemon *d, char why[CONF_WHY])
{
	struct mistakes m = {.first = why};
	static struct keyring ring;
	struct conf c;

	*why = 0;
	if (!load(&c, &m)) {
		if (!*why)
			strcpy(why, "mistake on the command line");
		log_line("keeping the old configuration");
		return false;
	}
	if (!load_keys(&c, &ring, why)) {
		log_line("%s; keeping the old configuration", why);
		return false;
	}
	if (strcmp(c.group, d->conf.group) || strcmp(c.user, d->conf.user) ||
	    strcmp(c.socket, d->conf.socket) || strcmp(c.control, d->conf.control) ||
	    c.sandbox != d->conf.sandbox) {
		strcpy(why, "user, group, socket, control and sandbox need a restart to change; "
			    "keeping the old configuration");
		log_line("%s", why);
		return false;
	}
	engine_set_keys(&d->engine, &ring);
	keys_wipe(&ring);
	d->conf = c;
	d->engine.params.use = c.use;
	d->engine.params.require_auth = c.require_auth;
	d->engine.params.legacy = c.legacy;
	log_verbose = c.verbose;
	capture_reload(d);
	log_info("configuration reloaded");
	return true;
}

static void signal_ready(struct source *s, uint32_t events)
{
	struct signalfd_siginfo si;
	char why[CONF_WHY];

	(void)events;
	if (read(s->fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGHUP) {
		reload(&the_daemon, why);
		return;
	}
	log_info("stopping on signal %u", si.ssi_signo);
	the_daemon.stop = DAEMON_ENDS;
}

static void timer_ready(struct source *s, uint32_t events)
{
	uint64_t n;

	/* The work is done before the loop waits again. */
	(void)events;
	if (read(s->fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_line("timer: %s", strerror(errno));
}

/* A flow's allowance has expired: tell its sender and those who watch. */
static void expired(void *data, struct flow *f)
{
	struct daemon *d = data;

	log_limited(LOG_CLASS_RATE, "flow %llx: a router has fallen silent, %u remain",
		    (unsigned long long)f->cookie, f->rate.routers);
	ctl_event_flow(d, "expired", f);
	ipc_push(d, f);
}

/* Register the flows of a replay. Return: exit status, after logging what is wrong. */
static int add_flows(struct engine *e)
{
	FILE *f = line.flows ? fopen(line.flows, "re") : NULL;
	char error[256];
	unsigned int i;
	int err = 0;

	if (line.flows && !f) {
		log_line("%s: %s", line.flows, strerror(errno));
		return 1;
	}
	if (f) {
		if (offline_flows(f, e, error, sizeof(error))) {
			log_line("%s: %s", line.flows, error);
			err = ferror(f) ? 1 : 2;
		}
		fclose(f);
	}
	for (i = 0; i < line.n_flow && !err; i++) {
		if (offline_add(e, line.flow[i], error, sizeof(error))) {
			log_line("--flow '%s': %s", line.flow[i], error);
			err = 2;
		}
	}
	return err;
}

/* Replay a capture file (--read). Return: exit status. */
static int replay(struct engine *e)
{
	FILE *in = strcmp(line.read, "-") ? fopen(line.read, "re") : stdin;
	struct offline_count count;
	char error[256];
	int err = 1;

	if (!in) {
		log_line("%s: %s", line.read, strerror(errno));
	} else if ((err = add_flows(e))) {
		fclose(in);
	} else {
		err = offline_run(in, e, stdout, &count, error, sizeof(error)) != 0;
		if (err)
			log_line("%s: %s", line.read, error);
		offline_summary(e, &count, stdout);
		if (fflush(stdout) && !err) {
			log_line("cannot write the output: %s", strerror(errno));
			err = 1;
		}
	}
	engine_free(e);
	return err;
}

/* A captured message has been judged: tell those who watch, and the sender if its rate is new. */
static void judged(struct daemon *d, const struct verdict *v, const uint8_t *ip, uint32_t len,
		   uint64_t t_ns)
{
	ctl_event_verdict(d, v, t_ns);
	ctl_event_packet(d, v, ip, len, t_ns);
	if (v->changed)
		ipc_push(d, v->flow);
}

static void stats(struct daemon *d, struct request_env *env)
{
	capture_stats(d, env);
	ipc_stats(d, env);
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

/* Ping the service manager's watchdog. Return: when to do it again, or UINT64_MAX. */
static uint64_t watchdog(uint64_t now_ns, uint64_t every_ns)
{
	static uint64_t next;

	if (!every_ns)
		return UINT64_MAX;
	if (now_ns >= next) {
		notify("WATCHDOG=1");
		next = now_ns + every_ns;
	}
	return next;
}

static void run(struct daemon *d, int timer_fd)
{
	uint64_t armed = UINT64_MAX, alive_ns = notify_watchdog_ns();

	while (!d->stop) {
		uint64_t now = clock_ns(DAEMON_CLOCK), next;
		struct epoll_event ev;
		struct source *s;

		engine_expire_all(&d->engine, now, expired, d);
		next = capture_run(d, now);
		next = paqm_min64(next, engine_next(&d->engine));
		next = paqm_min64(next, unixsock_resume(d, now));
		next = paqm_min64(next, watchdog(now, alive_ns));
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

/* The sockets may be in a directory of ours; then they are removed at exit. */
static int serve(struct daemon *d, const struct sandbox_user *user, const struct opener *opener,
		 int timer_fd)
{
	static const struct capture_sink sink = {judged, ipc_filter_in_force};
	static const struct ctl_source source = {stats, reload};
	int err = 1;

	if (!ipc_open(d, d->conf.socket, user, ctl_event_flow) &&
	    !ctl_open(d, d->conf.control, user, &source) &&
	    !sandbox_drop(user, d->has_group ? &d->group : NULL, SANDBOX_NO_CAP) &&
	    !capture_open(d, opener, &sink) &&
	    (!d->conf.sandbox || !sandbox_filter(SANDBOX_WORKER, -1))) {
		log_info("ready: version %s, %s mode, senders at %s, paqmctl at %s", PAQM_VERSION,
			 allow_uses[d->conf.use], d->conf.socket, d->conf.control);
		notify("READY=1");
		run(d, timer_fd);
		notify("STOPPING=1");
		err = d->stop == DAEMON_FAILED;
	}
	ipc_close(d);
	ctl_close(d);
	capture_close(d);
	engine_free(&d->engine);
	return err;
}

int main(int argc, char **argv)
{
	struct daemon *d = &the_daemon;
	struct engine_params params = engine_defaults;
	struct source sig = {.ready = signal_ready}, timer = {.ready = timer_ready};
	struct mistakes none = {0};
	struct sandbox_user user = {0};
	static struct keyring ring;
	uint8_t key[PAQM_SIPHASH_KEY];
	char why[CONF_WHY];
	sigset_t set;
	struct opener opener = {-1, -1};
	int err;

	log_open();
	err = parse(argc, argv);
	if (err)
		return err;
	if (!load(&d->conf, &none))
		return 2;
	if (!find_group(&d->conf, &d->group, why) ||
	    !sandbox_has_user(d->conf.user, why, CONF_WHY) || !load_keys(&d->conf, &ring, why)) {
		log_line("%s", why);
		return 2;
	}
	if (line.check) {
		puts("no mistakes");
		return 0;
	}
	log_verbose = d->conf.verbose;
	d->has_group = *d->conf.group;
	d->owner = geteuid();
	d->start_ns = clock_ns(DAEMON_CLOCK);
	d->listen_ns = UINT64_MAX;
	if (!line.read) {
		if (sandbox_user(d->conf.user, &user))
			return 1;
		if (opener_start(&user, d->conf.sandbox, &opener))
			return 1;
		notify_open();
	}
	if (getrandom(key, sizeof(key), 0) != sizeof(key)) {
		log_line("no random numbers from the kernel: %s", strerror(errno));
		return 1;
	}
	params.use = d->conf.use;
	params.require_auth = d->conf.require_auth;
	params.legacy = d->conf.legacy;
	engine_init(&d->engine, &params, key);
	engine_set_keys(&d->engine, &ring);
	keys_wipe(&ring);
	if (line.read)
		return replay(&d->engine);
	d->engine.owner = owner_of; /* a file's sockets are not this host's */

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* of the log */
	d->epfd = epoll_create1(EPOLL_CLOEXEC);
	d->spare = fcntl(d->epfd, F_DUPFD_CLOEXEC, 0);
	sig.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	timer.fd = timerfd_create(DAEMON_CLOCK, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->epfd < 0 || d->spare < 0 || sig.fd < 0 || timer.fd < 0 ||
	    loop_watch(d, &sig, EPOLLIN) || loop_watch(d, &timer, EPOLLIN)) {
		log_line("cannot set up the event loop: %s", strerror(errno));
		return 1;
	}
	return serve(d, &user, &opener, timer.fd);
}
