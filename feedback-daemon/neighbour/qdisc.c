// SPDX-License-Identifier: GPL-2.0
/* Rtnetlink to a queue; see qdisc.h. */
#include "feedback-daemon/neighbour/qdisc.h"

#include <errno.h>
#include <net/if.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "kernel/uapi/linux/pkt_sched_rlqos.h"

#define KIND "rlqos"

struct request {
	struct nlmsghdr n;
	struct tcmsg t;
	char attrs[64];
};

static uint32_t seq;

int qdisc_open(void)
{
	struct sockaddr_nl self = {.nl_family = AF_NETLINK};
	struct timeval limit = {.tv_sec = 1};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -1;
	if (!bind(fd, (struct sockaddr *)&self, sizeof(self)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return fd;
	close(fd);
	return -1;
}

static struct request request(int type, int flags, int ifindex, uint32_t handle)
{
	return (struct request){
		.n = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
		      .nlmsg_type = (__u16)type,
		      .nlmsg_flags = (__u16)(NLM_F_REQUEST | flags),
		      .nlmsg_seq = ++seq},
		.t = {.tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_handle = handle},
	};
}

/* Append an attribute; there is room for the few that there are. */
static void put(struct request *r, unsigned short type, const void *data, unsigned short len)
{
	struct rtattr *a = (struct rtattr *)((char *)r + NLMSG_ALIGN(r->n.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	r->n.nlmsg_len = NLMSG_ALIGN(r->n.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* What came, message by message; @found sees those of @kind, and ends all by returning true. */
struct taking {
	int kind;
	size_t least; /* bytes behind the header */
	bool (*found)(void *data, const struct nlmsghdr *n);
	void *data;
};

static int talk(int fd, const struct nlmsghdr *r, const struct taking *t)
{
	_Alignas(struct nlmsghdr) char buf[16384];
	bool done = false;

	if (send(fd, r, r->nlmsg_len, 0) < 0)
		return -1;
	for (;;) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		unsigned int len = (unsigned int)got;
		struct nlmsghdr *n = (struct nlmsghdr *)buf;

		if (got < 0)
			return -1;
		for (; NLMSG_OK(n, len); n = NLMSG_NEXT(n, len)) {
			if (n->nlmsg_seq != r->nlmsg_seq)
				continue; /* a late answer to a request that was given up */
			if (n->nlmsg_type == NLMSG_DONE)
				return 0;
			if (n->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(n))->error;
				return errno ? -1 : 0;
			}
			if (!done && t && n->nlmsg_type == t->kind &&
			    n->nlmsg_len >= NLMSG_LENGTH(t->least))
				done = t->found(t->data, n);
			if (done && !(r->nlmsg_flags & NLM_F_DUMP))
				return 0;
		}
	}
}

/* An attribute of at least so many bytes. */
static struct rtattr *attribute(struct rtattr *a, int len, int type, size_t least)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return RTA_PAYLOAD(a) >= least ? a : NULL;
	return NULL;
}

struct finding {
	int ifindex;
	uint32_t handle;
};

static bool is_it(void *data, const struct nlmsghdr *n)
{
	const struct tcmsg *t = NLMSG_DATA(n);
	struct rtattr *kind = attribute(TCA_RTA(t), (int)TCA_PAYLOAD(n), TCA_KIND, sizeof(KIND));
	struct finding *f = data;

	if (t->tcm_ifindex != f->ifindex || !kind || strcmp(RTA_DATA(kind), KIND))
		return false;
	f->handle = t->tcm_handle;
	return true;
}

int qdisc_find(int fd, int ifindex, uint32_t *handle)
{
	struct request r = request(RTM_GETQDISC, NLM_F_DUMP, ifindex, 0);
	struct finding f = {.ifindex = ifindex};
	int err = talk(fd, &r.n, &(struct taking){RTM_NEWQDISC, sizeof(struct tcmsg), is_it, &f});

	*handle = err ? 0 : f.handle;
	return err;
}

static bool load_of(void *data, const struct nlmsghdr *n)
{
	struct rtattr *stats =
		attribute(TCA_RTA(NLMSG_DATA(n)), (int)TCA_PAYLOAD(n), TCA_STATS2, 0);
	struct tc_rlqos_xstats st;

	if (stats)
		stats = attribute(RTA_DATA(stats), (int)RTA_PAYLOAD(stats), TCA_STATS_APP,
				  sizeof(st));
	if (stats) {
		memcpy(&st, RTA_DATA(stats), sizeof(st));
		*(uint32_t *)data = st.probability ? st.load : 0;
	}
	return true;
}

int qdisc_ask(int fd, int ifindex, uint32_t handle, uint32_t *load)
{
	/* without ECHO the answer only goes to who listens to all changes */
	struct request r = request(RTM_GETQDISC, NLM_F_ECHO, ifindex, handle);

	*load = 0;
	return talk(fd, &r.n, &(struct taking){RTM_NEWQDISC, sizeof(struct tcmsg), load_of, load});
}

int qdisc_tell(int fd, int ifindex, uint32_t handle, uint32_t load)
{
	struct request r = request(RTM_NEWQDISC, NLM_F_ACK, ifindex, handle);
	struct rtattr *nest;

	put(&r, TCA_KIND, KIND, sizeof(KIND));
	nest = (struct rtattr *)((char *)&r + NLMSG_ALIGN(r.n.nlmsg_len));
	put(&r, TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
	put(&r, TCA_RLQOS_DOWNSTREAM, &load, sizeof(load));
	nest->rta_len = (unsigned short)((char *)&r + r.n.nlmsg_len - (char *)nest);
	return talk(fd, &r.n, NULL);
}

static bool index_of(void *data, const struct nlmsghdr *n)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(n);

	*(int *)data = ifi->ifi_index;
	return true;
}

int qdisc_device(int fd, const char *name)
{
	struct {
		struct nlmsghdr n;
		struct ifinfomsg ifi;
		struct rtattr a;
		char name[IFNAMSIZ];
	} r = {.n = {.nlmsg_len = sizeof(r),
		     .nlmsg_type = RTM_GETLINK,
		     .nlmsg_flags = NLM_F_REQUEST,
		     .nlmsg_seq = ++seq},
	       .a = {.rta_type = IFLA_IFNAME, .rta_len = RTA_LENGTH(IFNAMSIZ)}};
	int index = 0;

	memcpy(r.name, name, strnlen(name, IFNAMSIZ - 1));
	if (talk(fd, &r.n, &(struct taking){RTM_NEWLINK, sizeof(r.ifi), index_of, &index}))
		return 0;
	return index;
}
