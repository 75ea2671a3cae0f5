// SPDX-License-Identifier: GPL-2.0
/* Notifications about devices; see links.h. */
#include "feedback-daemon/capture/links.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"

#define NEWS_PER_TURN 64
#define PATIENCE_MS 10000 /* for the kernel to answer */

/* Where @index is among the parts, or would be. */
static size_t place(const struct links *l, unsigned int index)
{
	size_t low = 0, high = l->parts;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (l->part[mid] < index)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool links_is_part(const struct links *l, unsigned int index)
{
	size_t i = place(l, index);

	return i < l->parts && l->part[i] == index;
}

static void set_part(struct links *l, unsigned int index, bool part)
{
	size_t i = place(l, index), room = l->room ? 2 * l->room : 16;
	unsigned int *more;

	if (part == links_is_part(l, index))
		return;
	if (!part) {
		l->parts--;
		memmove(&l->part[i], &l->part[i + 1], (l->parts - i) * sizeof(*l->part));
		return;
	}
	if (l->parts == l->room) {
		more = realloc(l->part, room * sizeof(*more));
		if (!more) {
			log_line("no memory for device number %u: treated as a device of its own",
				 index);
			return;
		}
		l->part = more;
		l->room = room;
	}
	memmove(&l->part[i + 1], &l->part[i], (l->parts - i) * sizeof(*l->part));
	l->part[i] = index;
	l->parts++;
}

bool link_is(const struct link_news *news, const char *name)
{
	const struct rtattr *a;
	int left;

	if (!strcmp(name, news->name))
		return true;
	if (!news->others)
		return false;
	left = (int)RTA_PAYLOAD(news->others);
	for (a = RTA_DATA(news->others); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_ALT_IFNAME && !strcmp(name, RTA_DATA(a)))
			return true; /* terminated by the kernel */
	return false;
}

/* The kind of what it is a part of; "" if it does not say. */
static const char *slave_kind(const struct rtattr *info)
{
	const struct rtattr *a = RTA_DATA(info);
	int left = (int)RTA_PAYLOAD(info);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_INFO_SLAVE_KIND)
			return RTA_DATA(a); /* terminated by the kernel */
	return "";
}

static void take(struct links *l, const struct nlmsghdr *h)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(h);
	int left = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*ifi));
	struct link_news news = {.name = "", .gone = h->nlmsg_type == RTM_DELLINK};
	const struct rtattr *a = IFLA_RTA(ifi);
	const char *kind = "";
	bool part = false;

	/* A bridge tells of its ports in messages of its own, also that one leaves it. */
	if (left < 0 || ifi->ifi_family != AF_UNSPEC)
		return;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME)
			news.name = RTA_DATA(a);
		else if (a->rta_type == IFLA_MASTER)
			part = true;
		else if (a->rta_type == IFLA_LINKINFO)
			kind = slave_kind(a);
		else if ((a->rta_type & NLA_TYPE_MASK) == IFLA_PROP_LIST)
			news.others = a;
		else if (a->rta_type == IFLA_WIRELESS)
			return; /* news of the radio: of the device it says nothing but the name */
	}
	news.index = (unsigned int)ifi->ifi_index;
	set_part(l, news.index, !news.gone && part && strcmp(kind, "vrf"));
	l->told(l->data, &news);
}

/* Others may write to a netlink socket as well, and what they say of devices is theirs; the kernel
 * has port 0. Return: bytes, 0 if there is nothing to be read in them, -1 with errno.
 */
static ssize_t receive(struct links *l, void *buf, size_t size)
{
	struct sockaddr_nl from = {.nl_pid = UINT32_MAX};
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(l->source.fd, buf, size, 0, (struct sockaddr *)&from, &len);

	if (n < 0 || (len == sizeof(from) && from.nl_family == AF_NETLINK && !from.nl_pid))
		return n;
	l->foreign++;
	log_limited(LOG_CLASS_CLIENT,
		    "interface notification from port %u, not from the kernel: ignored",
		    from.nl_pid);
	return 0;
}

static bool ask_for_all(const struct links *l)
{
	const struct {
		struct nlmsghdr h;
		struct ifinfomsg ifi;
	} r = {.h = {.nlmsg_len = sizeof(r),
		     .nlmsg_type = RTM_GETLINK,
		     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};

	return send(l->source.fd, &r, sizeof(r), 0) == sizeof(r);
}

/* Read what is there. Return: whether the answer to ask_for_all() has ended. */
static bool read_news(struct links *l)
{
	union {
		struct nlmsghdr h;
		char buf[32768];
	} u;
	unsigned int i;
	bool end = false;

	for (i = 0; i < NEWS_PER_TURN; i++) {
		ssize_t n = receive(l, &u, sizeof(u));
		const struct nlmsghdr *h = &u.h;
		unsigned int left = n > 0 ? (unsigned int)n : 0;

		if (n < 0 && errno == ENOBUFS) {
			l->told(l->data, NULL);
			if (!ask_for_all(l))
				log_line("cannot ask for the interfaces: %s", strerror(errno));
		} else if (n < 0 && errno != EINTR) {
			break;
		}
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			end |= h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK)
				take(l, h);
		}
	}
	return end;
}

static void ready(struct source *s, uint32_t events)
{
	(void)events;
	read_news((struct links *)s);
}

int links_open(struct links *l, struct daemon *d,
	       void (*told)(void *data, const struct link_news *news), void *data)
{
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	struct pollfd p = {.events = POLLIN};

	*l = (struct links){.source.ready = ready, .told = told, .data = data};
	p.fd = l->source.fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (p.fd >= 0 && !bind(p.fd, (struct sockaddr *)&sa, sizeof(sa)) && ask_for_all(l)) {
		errno = ETIMEDOUT;
		while (poll(&p, 1, PATIENCE_MS) > 0)
			if (read_news(l))
				return loop_watch(d, &l->source, EPOLLIN);
	}
	log_line("cannot follow changes of interfaces: %s", strerror(errno));
	return -1;
}

void links_close(struct links *l)
{
	if (l->source.fd >= 0)
		close(l->source.fd);
	free(l->part);
	l->part = NULL;
}
