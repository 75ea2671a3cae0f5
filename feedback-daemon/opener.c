// SPDX-License-Identifier: GPL-2.0
/* The process that opens capture sockets; see opener.h. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#include "opener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"

#define BLOCK 65536U
#define ANSWER_S 10 /* a kernel that hangs for longer is no use */

enum what { OPEN = 1, CLOSE, FILTER };

struct request {
	uint32_t what;
	uint32_t slot;
	char name[CONF_IFACE_LEN];
	struct filter_flows flows;
};

struct reply {
	int32_t error;
	uint32_t index;
};

_Static_assert(CONF_IFACE_LEN == IFNAMSIZ, "names of interfaces");

struct opener {
	int sock[CONF_IFACES];
	bool all[CONF_IFACES];
};

static int attach(int sock, bool all, const struct filter_flows *flows)
{
	struct sock_filter prog[FILTER_INSNS];
	struct sock_fprog p = {.len = filter_build(flows, all, prog), .filter = prog};

	return setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)) ? -errno : 0;
}

/* The socket gets its first packet when it is bound, with all else in place. */
static int prepare(int sock, const struct request *r, bool all, uint32_t *index)
{
	static const int version = TPACKET_V2;
	const struct tpacket_req ring = {.tp_block_size = BLOCK,
					 .tp_block_nr = OPENER_RING / BLOCK,
					 .tp_frame_size = OPENER_FRAME,
					 .tp_frame_nr = OPENER_FRAMES};
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct ifreq ifr = {0};
	int err;

	memcpy(ifr.ifr_name, r->name, IFNAMSIZ);
	if (!all && ioctl(sock, SIOCGIFINDEX, &ifr))
		return -errno;
	ll.sll_ifindex = all ? 0 : ifr.ifr_ifindex;
	err = attach(sock, all, &r->flows);
	if (err)
		return err;
	if (setsockopt(sock, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(sock, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)) ||
	    bind(sock, (struct sockaddr *)&ll, sizeof(ll)))
		return -errno;
	*index = (uint32_t)ll.sll_ifindex;
	return 0;
}

static void forget(struct opener *o, uint32_t slot)
{
	if (o->sock[slot] >= 0)
		close(o->sock[slot]);
	o->sock[slot] = -1;
}

static int do_open(struct opener *o, const struct request *r, uint32_t *index)
{
	bool all = !strcmp(r->name, "any");
	int sock, err;

	forget(o, r->slot);
	/* Cooked: no link header, whatever the link; and no packets yet. */
	sock = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	err = prepare(sock, r, all, index);
	if (err) {
		close(sock);
		return err;
	}
	o->sock[r->slot] = sock;
	o->all[r->slot] = all;
	return 0;
}

static int do_filter(const struct opener *o, const struct filter_flows *flows)
{
	size_t i;
	int err = 0;

	for (i = 0; i < CONF_IFACES && !err; i++)
		if (o->sock[i] >= 0)
			err = attach(o->sock[i], o->all[i], flows);
	return err;
}

union fd_space {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int))];
};

/* Send the answer, with the socket if there is one. */
static bool answer(int fd, const struct reply *reply, int sock)
{
	struct iovec iov = {.iov_base = (void *)reply, .iov_len = sizeof(*reply)};
	union fd_space space = {0};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (sock >= 0) {
		m.msg_control = space.buf;
		m.msg_controllen = sizeof(space.buf);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &sock, sizeof(int));
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) == sizeof(*reply);
}

static void serve(int fd)
{
	static struct opener o;
	size_t i;

	for (i = 0; i < CONF_IFACES; i++)
		o.sock[i] = -1;
	for (;;) {
		struct request r;
		struct iovec iov = {.iov_base = &r, .iov_len = sizeof(r)};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
		struct reply reply = {.error = EINVAL};
		ssize_t n = recvmsg(fd, &m, 0);
		int sock = -1;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (n == sizeof(r) && !(m.msg_flags & MSG_TRUNC)) {
			r.name[IFNAMSIZ - 1] = 0;
			if (r.what == OPEN && r.slot < CONF_IFACES) {
				reply.error = -do_open(&o, &r, &reply.index);
				sock = o.sock[r.slot];
			} else if (r.what == CLOSE && r.slot < CONF_IFACES) {
				forget(&o, r.slot);
				reply.error = 0;
			} else if (r.what == FILTER) {
				reply.error = -do_filter(&o, &r.flows);
			}
		}
		if (!answer(fd, &reply, sock))
			return;
	}
}

static void child(int fd, const struct sandbox_user *user, bool sandbox)
{
	prctl(PR_SET_NAME, "paqmd-opener");
	if (sandbox_drop(user, SANDBOX_OPENER, NULL) || (sandbox && sandbox_filter(SANDBOX_OPENER)))
		_exit(1);
	serve(fd);
	_exit(0);
}

int opener_start(const struct sandbox_user *user, bool sandbox)
{
	struct timeval patience = {.tv_sec = ANSWER_S};
	pid_t pid;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) ||
	    setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
		log_line("cannot reach an opener: %s", strerror(errno));
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		/* It ends when the worker does: signals are not for it. */
		signal(SIGINT, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		child(fd[1], user, sandbox);
	}
	close(fd[1]);
	if (pid > 0)
		return fd[0];
	log_line("cannot start the opener: %s", strerror(errno));
	close(fd[0]);
	return -1;
}

int opener_take(int fd, bool wait, struct opener_answer *a)
{
	struct reply reply;
	struct iovec iov = {.iov_base = &reply, .iov_len = sizeof(reply)};
	union fd_space space = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = space.buf,
			   .msg_controllen = sizeof(space.buf)};
	const struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return wait ? ETIMEDOUT : EAGAIN;
	if (n != sizeof(reply))
		return EPIPE;
	*a = (struct opener_answer){.error = reply.error, .sock = -1, .index = reply.index};
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&a->sock, CMSG_DATA(c), sizeof(int));
	else if (m.msg_flags & MSG_CTRUNC)
		a->error = EMFILE; /* we could not take the socket */
	return 0;
}

static bool ask(int fd, const struct request *r)
{
	return send(fd, r, sizeof(*r), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*r);
}

bool opener_open(int fd, unsigned int slot, const char *name, const struct filter_flows *flows)
{
	struct request r = {.what = OPEN, .slot = slot, .flows = *flows};

	strncpy(r.name, name, sizeof(r.name) - 1);
	return ask(fd, &r);
}

bool opener_close(int fd, unsigned int slot)
{
	const struct request r = {.what = CLOSE, .slot = slot};

	return ask(fd, &r);
}

bool opener_filter(int fd, const struct filter_flows *flows)
{
	const struct request r = {.what = FILTER, .flows = *flows};

	return ask(fd, &r);
}
