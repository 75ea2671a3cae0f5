// SPDX-License-Identifier: GPL-2.0
/* The process that opens the captures and sets their filters; see opener.h. */
#define _GNU_SOURCE /* pipe2 */
#include "feedback-daemon/capture/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pcap/pcap.h>
#include <pcap/sll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "feedback-daemon/capture/batch.h"
#include "feedback-daemon/capture/capturer.h"
#include "feedback-daemon/host/log.h"

#define ANSWER_S 10 /* a kernel that hangs for longer is no use */

/* Packets wait here while the processor is busy: 20 ms of 200,000 a second. */
#define RING (3 << 20)
#define BATCH_RING (4 << 20) /* of 64 batches */
#define PIPE (256 << 10)     /* fewer changes between the processes; a smaller one will do */

enum { MEDIA, BATCHES, MESSAGES, CAPTURES };

struct request {
	char name[CONF_IFACES][CONF_IFACE_LEN];
	struct filter_flows flows;
};

_Static_assert(CONF_IFACE_LEN == IFNAMSIZ, "names of interfaces");
_Static_assert(CONF_IFACES == FILTER_DEVICES, "all of them may be captured");

static int attach(int sock, unsigned short len, struct sock_filter *prog)
{
	const struct sock_fprog p = {.len = len, .filter = prog};

	if (!len)
		return ENOMEM;
	/* libpcap would let nothing through for a moment, and a packet that leaves then could
	 * prove nothing; the kernel changes filters without a gap.
	 */
	return setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)) ? errno : 0;
}

/* 0: there is no such device. */
static uint32_t device(int sock, const char *name)
{
	struct ifreq ifr = {0};

	strncpy(ifr.ifr_name, name, IFNAMSIZ - 1);
	return ioctl(sock, SIOCGIFINDEX, &ifr) ? 0 : (uint32_t)ifr.ifr_ifindex;
}

/*
 * Messages that leave are to be seen where there are devices beside the uplink, for only they lead
 * to guests. Else all that leaves is spared a second filter; old kernels run it.
 */
static void see_leaving(int sock, const struct filter_devices *d)
{
	int spared, named = 0;
	uint32_t i;

	for (i = 0; i < d->n; i++)
		named += d->index[i] != 0;
	spared = !d->all && named < 2;
	setsockopt(sock, SOL_PACKET, PACKET_IGNORE_OUTGOING, &spared, sizeof(spared));
}

/* @sock: of the captures */
static void set_filters(const int sock[CAPTURES], const struct request *r, struct opener_answer *a)
{
	struct filter_devices d = {.n = CONF_IFACES, .loopback = device(sock[MEDIA], "lo")};
	struct sock_filter prog[FILTER_INSNS];
	size_t i;

	for (i = 0; i < CONF_IFACES; i++) {
		d.all |= !strcmp(r->name[i], "any");
		d.index[i] = r->name[i][0] ? device(sock[MEDIA], r->name[i]) : 0;
		a->index[i] = d.index[i];
	}
	a->loopback = d.loopback;
	see_leaving(sock[MESSAGES], &d);
	a->error = attach(sock[MESSAGES], filter_messages(&d, prog), prog);
	if (!a->error)
		a->error = attach(sock[MEDIA], filter_media(&d, &r->flows, false, prog), prog);
	if (!a->error)
		a->error = attach(sock[BATCHES], filter_media(&d, &r->flows, true, prog), prog);
}

static void serve(const int sock[CAPTURES], int fd)
{
	for (;;) {
		struct opener_answer a = {.error = EINVAL};
		struct request r;
		ssize_t n = recv(fd, &r, sizeof(r), MSG_TRUNC);
		size_t i;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		for (i = 0; i < CONF_IFACES; i++)
			r.name[i][IFNAMSIZ - 1] = 0;
		if (n == sizeof(r))
			set_filters(sock, &r, &a);
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			return;
	}
}

static void skip(u_char *data, const struct pcap_pkthdr *h, const u_char *bytes)
{
	(void)data;
	(void)h;
	(void)bytes;
}

/*
 * Why packet sockets are refused. Who has the capability looks elsewhere: it may hold in the
 * namespace of a container's users only.
 */
static void tell_refused(int err, char error[PCAP_ERRBUF_SIZE])
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};

	if (err == EAFNOSUPPORT)
		snprintf(error, PCAP_ERRBUF_SIZE,
			 "no packet sockets: the kernel lacks CONFIG_PACKET, or "
			 "RestrictAddressFamilies= of the unit leaves out AF_PACKET");
	else if (!syscall(SYS_capget, &h, caps) && caps[0].effective >> CAP_NET_RAW & 1)
		snprintf(error, PCAP_ERRBUF_SIZE,
			 "packet sockets are refused though CAP_NET_RAW is there: by SELinux, "
			 "AppArmor or a seccomp profile (see the kernel's log), or because the "
			 "network namespace does not belong to the user namespace");
	else
		snprintf(error, PCAP_ERRBUF_SIZE,
			 "CAP_NET_RAW is missing: run as root or give it to paqmd");
}

/* A capture of all devices that shows nothing yet. Return: it, or NULL with @error. */
static pcap_t *open_one(int snap, int ring, char error[PCAP_ERRBUF_SIZE])
{
	struct sock_filter nothing = {.code = BPF_RET | BPF_K};
	pcap_t *p = pcap_create("any", error);
	int err;

	if (!p)
		return NULL;
	pcap_set_snaplen(p, SLL2_HDR_LEN + snap);
	pcap_set_immediate_mode(p, 1);
	pcap_set_buffer_size(p, ring);
	pcap_set_tstamp_precision(p, PCAP_TSTAMP_PRECISION_NANO);
	errno = 0;
	err = pcap_activate(p);
	/* no packet sockets: to libpcap 1.10.5 an error of its own, to those before any error */
	if (err == PCAP_ERROR_PERM_DENIED || (err < 0 && errno == EAFNOSUPPORT))
		tell_refused(errno, error);
	else if (err < 0)
		snprintf(error, PCAP_ERRBUF_SIZE, "%s: %s", pcap_statustostr(err), pcap_geterr(p));
	else if (pcap_set_datalink(p, DLT_LINUX_SLL2))
		snprintf(error, PCAP_ERRBUF_SIZE, "%s", pcap_geterr(p));
	else if (!pcap_setnonblock(p, 1, error) && !attach(pcap_fileno(p), 1, &nothing)) {
		/* what came before the filter */
		while (pcap_dispatch(p, -1, skip, NULL) > 0)
			;
		return p;
	}
	pcap_close(p);
	return NULL;
}

static bool open_all(struct capturer *c)
{
	char error[PCAP_ERRBUF_SIZE] = "no filter can be set";

	c->media = open_one(FILTER_MEDIA_SNAP, RING, error);
	c->batches = c->media ? open_one(BATCH_SNAP, BATCH_RING, error) : NULL;
	c->messages = c->batches ? open_one(FILTER_SNAP, RING, error) : NULL;
	if (c->messages)
		return true;
	log_line("cannot capture: %s", error);
	return false;
}

static void give_up(const struct sandbox_user *user, bool sandbox, enum sandbox_shape shape, int to)
{
	if (sandbox_drop(user, NULL, SANDBOX_NO_CAP) || (sandbox && sandbox_filter(shape, to)))
		_exit(1);
}

/* The descriptors of the captures, from the process that has opened them to the other. */
union passed {
	struct cmsghdr h;
	char buf[CMSG_SPACE(sizeof(int[CAPTURES]))];
};

static bool pass(int to, const struct capturer *c)
{
	const int sock[CAPTURES] = {pcap_fileno(c->media), pcap_fileno(c->batches),
				    pcap_fileno(c->messages)};
	union passed u = {.h = {.cmsg_len = CMSG_LEN(sizeof(sock)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec v = {.iov_base = (char[]){0}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = u.buf,
			   .msg_controllen = sizeof(u.buf)};

	memcpy(CMSG_DATA(&u.h), sock, sizeof(sock));
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1;
}

static bool take_passed(int from, int sock[CAPTURES])
{
	union passed u;
	char byte;
	struct iovec v = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = u.buf,
			   .msg_controllen = sizeof(u.buf)};

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m) ||
	    u.h.cmsg_len != CMSG_LEN(sizeof(int[CAPTURES])))
		return false;
	memcpy(sock, CMSG_DATA(&u.h), sizeof(int[CAPTURES]));
	return true;
}

/* The capturer opens for itself: rings of captures that are mapped when a process forks are
 * corrupted by kernels of 2026 (7.3), and here nobody else needs to see what is in them.
 */
static void capturer(int opener, int out, const struct sandbox_user *user, bool sandbox)
{
	struct capturer c = {.out = out};

	prctl(PR_SET_NAME, "paqmd-capturer");
	if (!open_all(&c) || !pass(opener, &c))
		_exit(1);
	close(opener);
	give_up(user, sandbox, SANDBOX_CAPTURER, out);
	capturer_run(&c);
	_exit(0);
}

static void child(int fd, int out, const struct sandbox_user *user, bool sandbox)
{
	int between[2], sock[CAPTURES];
	pid_t pid;

	prctl(PR_SET_NAME, "paqmd-opener");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, between)) {
		log_line("cannot reach the capturer: %s", strerror(errno));
		_exit(1);
	}
	pid = fork();
	if (pid == 0) {
		close(fd);
		close(between[0]);
		capturer(between[1], out, user, sandbox);
	}
	if (pid < 0) {
		log_line("cannot start the capturer: %s", strerror(errno));
		_exit(1);
	}
	close(out);
	close(between[1]);
	if (!take_passed(between[0], sock))
		_exit(1); /* it has said why */
	close(between[0]);
	give_up(user, sandbox, SANDBOX_OPENER, fd);
	serve(sock, fd);
	_exit(0);
}

int opener_start(const struct sandbox_user *user, bool sandbox, struct opener *o)
{
	struct timeval patience = {.tv_sec = ANSWER_S};
	int fd[2] = {-1, -1}, out[2] = {-1, -1};
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) ||
	    setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    pipe2(out, O_CLOEXEC)) {
		log_line("cannot reach the opener: %s", strerror(errno));
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		close(out[0]);
		/* They end when the worker does: signals are not for them. */
		signal(SIGINT, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		child(fd[1], out[1], user, sandbox);
	}
	close(fd[1]);
	close(out[1]);
	fcntl(out[0], F_SETPIPE_SZ, PIPE);
	*o = (struct opener){.ask = fd[0], .packets = out[0]};
	if (pid > 0)
		return 0;
	log_line("cannot start the opener: %s", strerror(errno));
	return -1;
}

int opener_take(int fd, bool wait, struct opener_answer *a)
{
	ssize_t n;

	do
		n = recv(fd, a, sizeof(*a), wait ? 0 : MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return wait ? ETIMEDOUT : EAGAIN;
	return n == sizeof(*a) ? 0 : EPIPE;
}

bool opener_filter(int fd, char names[CONF_IFACES][CONF_IFACE_LEN],
		   const struct filter_flows *flows)
{
	struct request r = {.flows = *flows};

	memcpy(r.name, names, sizeof(r.name));
	return send(fd, &r, sizeof(r), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(r);
}
