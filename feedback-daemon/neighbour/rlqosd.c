// SPDX-License-Identifier: GPL-2.0
/*
 * rlqosd: tells the neighbours upstream how loaded this node's rlqos queues are, and the queues
 * what the neighbours downstream say. docs/rlqos.md has the protocol.
 *
 * One thread, one timer, a socket for each device and one to the kernel. All are there before it
 * drops its privileges.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/paqm_rlmsg.h"
#include "feedback-daemon/host/log.h"
#include "feedback-daemon/host/notify.h"
#include "feedback-daemon/host/sandbox.h"
#include "feedback-daemon/host/utf8.h"
#include "feedback-daemon/loop.h"
#include "feedback-daemon/neighbour/neighbours.h"
#include "feedback-daemon/neighbour/qdisc.h"

#define DEVICES_MAX 16
#define MS 1000000ULL
#define LOOK_NS (1000 * MS) /* how often a device without a queue is looked at */
#define TOS_EF (46 << 2)

static const char usage[] =
	"Usage: rlqosd [OPTION]... DEVICE...\n"
	"Carry the loads of rlqos queues between neighbouring nodes.\n"
	"\n"
	"  -p, --period MS   between two messages, as the queues' period is (default: 5)\n"
	"      --user USER   user to run as when started as root (default: " SANDBOX_USER ")\n"
	"      --sandbox=no  do not restrict rlqosd's system calls\n"
	"  -v, --verbose     log when queues come and go\n"
	"  -h, --help        print this help and exit\n"
	"  -V, --version     print the version and exit\n"
	"\n"
	"Needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE. Prints counters as JSON when it ends.\n"
	"See rlqosd(8), tc-rlqos(8).\n";

struct device {
	const char *name;
	int ifindex, sock;
	uint32_t handle; /* of its queue; 0: none is known */
	uint64_t look_ns;
	bool away;
	uint32_t load; /* of its queue, while that thins */
	uint32_t seq;
	bool told; /* the last message said more than 0 */
	struct neighbours heard;
	uint64_t sent, send_failed, tell_failed, what[HEARD_WHATS];
};

static struct device devices[DEVICES_MAX];
static int n_devices, kernel;
static uint64_t node, period_ns = 5 * MS;
static const char *user_name = SANDBOX_USER;
static bool sandboxed = true;

static bool open_socket(struct device *d)
{
	struct ip_mreqn group = {.imr_multiaddr.s_addr = htonl(PAQM_RLMSG_GROUP),
				 .imr_ifindex = d->ifindex};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PAQM_RLMSG_PORT)};
	const int off = 0, on = 1, ttl = PAQM_RLMSG_TTL, tos = TOS_EF;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	d->sock = fd;
	return fd >= 0 &&
	       !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, d->name,
			   (socklen_t)strlen(d->name) + 1) &&
	       !bind(fd, (struct sockaddr *)&any, sizeof(any)) &&
	       !setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)) &&
	       !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof(group)) &&
	       !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof(off)) &&
	       !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof(ttl)) &&
	       !setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)) &&
	       !setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
}

/* Its sockets are bound to a device that is no more, and others cannot be opened any more: who has
 * started us does that anew when the device is back. The others are served until then.
 * Return: false if it is.
 */
static bool is_ours(struct device *d)
{
	int index = qdisc_device(kernel, d->name);

	if (index == d->ifindex) {
		d->away = false;
		return true;
	}
	if (index) {
		log_line("%s: is another device now: ending, to be restarted", d->name);
		return false;
	}
	if (!d->away && errno == ENODEV) {
		log_warning("%s: the device has gone; waiting for it", d->name);
		d->away = true;
	}
	return true;
}

/* What a device's queue says of itself now. */
static void ask(struct device *d, uint64_t now_ns)
{
	uint32_t before = d->handle;

	d->load = 0;
	if (!d->handle) {
		if (now_ns < d->look_ns)
			return;
		d->look_ns = now_ns + LOOK_NS;
		if (qdisc_find(kernel, d->ifindex, &d->handle))
			log_limited(LOG_CLASS_RATE, "%s: cannot look for its queue: %s", d->name,
				    strerror(errno));
	}
	if (d->handle && qdisc_ask(kernel, d->ifindex, d->handle, &d->load))
		d->handle = 0; /* perhaps another one stands there now */
	if (log_verbose && !before != !d->handle)
		log_info("%s: %s", d->name, d->handle ? "has a queue" : "no longer has a queue");
}

/* Tell the neighbours at a device of the queues at all others. */
static void say(struct device *d)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(PAQM_RLMSG_PORT),
				 .sin_addr.s_addr = htonl(PAQM_RLMSG_GROUP)};
	struct paqm_rlmsg m = {.node = node, .seq = d->seq + 1};
	uint8_t data[PAQM_RLMSG_SIZE];

	for (int i = 0; i < n_devices; i++)
		if (&devices[i] != d && devices[i].load > m.load)
			m.load = devices[i].load;
	if (!m.load && !d->told)
		return;
	d->told = m.load;
	d->seq++;
	paqm_rlmsg_encode(data, &m);
	if (sendto(d->sock, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		d->send_failed++;
	else
		d->sent++;
}

/* Return: the time to live of a packet, -1: not known. */
static int ttl_of(struct msghdr *h)
{
	int ttl = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL)
			memcpy(&ttl, CMSG_DATA(c), sizeof(ttl));
	return ttl;
}

/* All that has come by a device; its queue hears of it once. */
static void hear(struct device *d)
{
	uint64_t now = clock_ns(DAEMON_CLOCK);
	bool any = false;

	for (;;) {
		uint8_t data[PAQM_RLMSG_SIZE + 1];
		_Alignas(struct cmsghdr) char more[64];
		struct iovec v = {data, sizeof(data)};
		struct msghdr h = {.msg_iov = &v,
				   .msg_iovlen = 1,
				   .msg_control = more,
				   .msg_controllen = sizeof(more)};
		ssize_t len = recvmsg(d->sock, &h, 0);
		enum heard what;

		if (len < 0)
			break;
		what = neighbours_hear(&d->heard, node, data, (uint32_t)len, ttl_of(&h), now,
				       PAQM_RLQOS_KEEPS * period_ns);
		d->what[what]++;
		any |= what == HEARD;
	}
	if (any && d->handle &&
	    qdisc_tell(kernel, d->ifindex, d->handle, neighbours_load(&d->heard, now)))
		d->tell_failed++;
}

static void counters(void)
{
	printf("{\"node\": \"%016llx\", \"devices\": [", (unsigned long long)node);
	for (int i = 0; i < n_devices; i++) {
		const struct device *d = &devices[i];
		char name[IF_NAMESIZE];

		printf("%s{\"device\": \"", i ? ", " : "");
		snprintf(name, sizeof(name), "%s", d->name);
		utf8_mend(name);
		for (const char *c = name; *c; c++) /* a name may have any but / and blanks */
			printf(*c == '"' || *c == '\\' || (*c > 0 && *c < ' ') ? "\\u%04x" : "%c",
			       *c);
		printf("\", \"sent\": %llu, \"send_failed\": %llu, \"tell_failed\": %llu",
		       (unsigned long long)d->sent, (unsigned long long)d->send_failed,
		       (unsigned long long)d->tell_failed);
		for (int w = 0; w < HEARD_WHATS; w++)
			printf(", \"%s\": %llu", heard_name((enum heard)w),
			       (unsigned long long)d->what[w]);
		printf("}");
	}
	printf("]}\n");
}

static int run(int timer, int signals)
{
	struct pollfd on[DEVICES_MAX + 2] = {{.fd = timer, .events = POLLIN},
					     {.fd = signals, .events = POLLIN}};
	uint64_t passed, now, look_ns = 0;

	for (int i = 0; i < n_devices; i++)
		on[i + 2] = (struct pollfd){.fd = devices[i].sock, .events = POLLIN};
	notify("READY=1");
	for (;;) {
		if (poll(on, (nfds_t)n_devices + 2, -1) < 0 && errno != EINTR) {
			log_line("poll: %s", strerror(errno));
			return 1;
		}
		if (on[1].revents)
			return 0;
		for (int i = 0; i < n_devices; i++)
			if (on[i + 2].revents)
				hear(&devices[i]);
		if (!on[0].revents || read(timer, &passed, sizeof(passed)) < 0)
			continue;
		now = clock_ns(DAEMON_CLOCK);
		if (now >= look_ns) {
			look_ns = now + LOOK_NS;
			for (int i = 0; i < n_devices; i++)
				if (!is_ours(&devices[i]))
					return 1;
		}
		for (int i = 0; i < n_devices; i++)
			ask(&devices[i], clock_ns(DAEMON_CLOCK));
		for (int i = 0; i < n_devices; i++)
			say(&devices[i]);
	}
}

/* Return: false after having logged what is wrong. */
static bool options(int argc, char **argv)
{
	enum { OPT_USER = 256, OPT_SANDBOX };
	static const struct option known[] = {
		{"period", required_argument, NULL, 'p'},
		{"user", required_argument, NULL, OPT_USER},
		{"sandbox", required_argument, NULL, OPT_SANDBOX},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	char *end;
	double ms;
	int o;

	while ((o = getopt_long(argc, argv, "p:vhV", known, NULL)) >= 0) {
		switch (o) {
		case 'p':
			ms = strtod(optarg, &end);
			if (*end || end == optarg || !(ms >= 1 && ms <= 1000)) {
				log_line("--period %s: must be 1 to 1000 milliseconds", optarg);
				return false;
			}
			period_ns = (uint64_t)(ms * 1e6);
			break;
		case OPT_USER:
			user_name = optarg;
			break;
		case OPT_SANDBOX:
			if (sandbox_option(optarg, &sandboxed))
				return false;
			break;
		case 'v':
			log_verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'V':
			puts("rlqosd " PAQM_VERSION);
			exit(0);
		default:
			return false;
		}
	}
	if (optind == argc || argc - optind > DEVICES_MAX) {
		log_line("name 1 to %d devices; see 'rlqosd --help'", DEVICES_MAX);
		return false;
	}
	for (; optind < argc; optind++)
		devices[n_devices++].name = argv[optind];
	return true;
}

int main(int argc, char **argv)
{
	struct sandbox_user user;
	struct itimerspec every;
	int timer, signals;
	sigset_t set;
	int status;

	log_name = "rlqosd";
	log_open();
	signal(SIGPIPE, SIG_IGN); /* of the log */
	if (!options(argc, argv))
		return 2;
	while (!node)
		if (getrandom(&node, sizeof(node), 0) < 0)
			node = 0;
	kernel = qdisc_open();
	if (kernel < 0) {
		log_line("rtnetlink: %s", strerror(errno));
		return 1;
	}
	for (int i = 0; i < n_devices; i++) {
		devices[i].ifindex = (int)if_nametoindex(devices[i].name);
		if (!devices[i].ifindex || !open_socket(&devices[i])) {
			log_line("%s: %s%s", devices[i].name, strerror(errno),
				 errno == EPERM || errno == EACCES
					 ? "; start it as root, or with CAP_NET_ADMIN and "
					   "CAP_NET_BIND_SERVICE"
					 : "");
			return 1;
		}
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	timer = timerfd_create(DAEMON_CLOCK, TFD_CLOEXEC | TFD_NONBLOCK);
	every.it_interval.tv_sec = (time_t)(period_ns / (1000 * MS));
	every.it_interval.tv_nsec = (long)(period_ns % (1000 * MS));
	every.it_value = every.it_interval;
	if (signals < 0 || timer < 0 || timerfd_settime(timer, 0, &every, NULL)) {
		log_line("timer: %s", strerror(errno));
		return 1;
	}
	notify_open();
	if (sandbox_user(user_name, &user) || sandbox_drop(&user, NULL, CAP_NET_ADMIN) ||
	    (sandboxed && sandbox_filter(SANDBOX_NEIGHBOUR, -1)))
		return 1;
	status = run(timer, signals);
	counters();
	return status;
}
