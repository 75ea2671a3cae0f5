// SPDX-License-Identifier: GPL-2.0
/*
 * Small parts of the torture test: a repeatable random source, and rtnetlink
 * requests built and sent by hand, well-formed or not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "torture_nl.h"

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "torture: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(2);
}

/* -------------------------------------------------------------- random source */

static uint64_t rng_state;

void rng_seed(uint64_t seed, uint64_t part)
{
	rng_state = seed * 0x9e3779b97f4a7c15ULL ^ (part + 1) * 0xd1342543de82ef95ULL;
}

/* splitmix64 */
uint64_t rnd64(void)
{
	uint64_t z = rng_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

uint32_t rnd(uint32_t below)
{
	return (rnd64() >> 32) * below >> 32;
}

uint32_t between(uint32_t low, uint32_t high)
{
	return low + rnd(high - low + 1);
}

/* True in @percent of the cases. */
bool chance(uint32_t percent)
{
	return rnd(100) < percent;
}

/* Spread evenly over the orders of magnitude. */
uint64_t rnd_magnitude(void)
{
	return rnd64() >> rnd(64);
}

/* A number that is taken, or any. */
uint32_t number(bool valid, uint32_t low, uint32_t high)
{
	return valid ? between(low, high) : rnd_edge();
}

/* One of the ends and oddities of a number's range. */
uint64_t rnd_edge(void)
{
	static const uint64_t edges[] = {0,	     1,		 2,	     UINT8_MAX,
					 UINT16_MAX, INT32_MAX,	 1ULL << 31, UINT32_MAX - 1,
					 UINT32_MAX, 1ULL << 32, INT64_MAX,  UINT64_MAX};

	return edges[rnd(ARRAY_SIZE(edges))];
}

/* -------------------------------------------------------------------- requests */

struct request req;
static int nl_fd = -1;
static uint32_t nl_seq;

void nl_open(void)
{
	struct sockaddr_nl local = {.nl_family = AF_NETLINK};
	int size = 1 << 22;

	nl_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (nl_fd < 0 || bind(nl_fd, (struct sockaddr *)&local, sizeof(local)))
		die("rtnetlink: %s", strerror(errno));
	setsockopt(nl_fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
}

/* Begin a request with its fixed header of @len bytes, which is zeroed. */
void *nl_begin(uint16_t type, uint16_t flags, size_t len)
{
	void *fixed = req.bytes + NLMSG_HDRLEN;

	memset(req.bytes, 0, NLMSG_HDRLEN + NLMSG_ALIGN(len));
	req.head.nlmsg_type = type;
	req.head.nlmsg_flags = NLM_F_REQUEST | flags;
	req.head.nlmsg_seq = ++nl_seq;
	req.head.nlmsg_len = NLMSG_HDRLEN + NLMSG_ALIGN(len);
	return fixed;
}

void *nl_attr(uint16_t type, const void *data, size_t len)
{
	struct rtattr *attr = (struct rtattr *)(req.bytes + req.head.nlmsg_len);

	if (req.head.nlmsg_len + RTA_SPACE(len) > sizeof(req.bytes))
		die("a request of more than %zu bytes", sizeof(req.bytes));
	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(len);
	memset(RTA_DATA(attr), 0, RTA_SPACE(len) - RTA_LENGTH(0));
	if (len && data)
		memcpy(RTA_DATA(attr), data, len);
	req.head.nlmsg_len += RTA_SPACE(len);
	return RTA_DATA(attr);
}

void nl_str(uint16_t type, const char *text)
{
	nl_attr(type, text, strlen(text) + 1);
}

struct rtattr *nl_nest(uint16_t type)
{
	struct rtattr *attr = (struct rtattr *)(req.bytes + req.head.nlmsg_len);

	nl_attr(type | NLA_F_NESTED, NULL, 0);
	return attr;
}

void nl_end(struct rtattr *nest)
{
	nest->rta_len = req.bytes + req.head.nlmsg_len - (char *)nest;
}

/*
 * Send the request and wait for its answer: 0, an errno, or NL_UNANSWERED if the
 * kernel had no memory for the answer.
 */
int nl_talk(void)
{
	static char answer[65536];
	struct nlmsghdr *head = (struct nlmsghdr *)answer;
	ssize_t got;

	req.head.nlmsg_flags |= NLM_F_ACK;
	if (send(nl_fd, &req, req.head.nlmsg_len, 0) < 0)
		return errno;
	for (;;) {
		got = recv(nl_fd, answer, sizeof(answer), MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NL_UNANSWERED;
		if (head->nlmsg_seq == nl_seq && head->nlmsg_type == NLMSG_ERROR)
			return -((struct nlmsgerr *)NLMSG_DATA(head))->error;
	}
}

/* Send the dump request and hand every object to @take; 0 or an errno. */
int nl_dump(void (*take)(const struct nlmsghdr *object))
{
	static char answer[1 << 18];
	ssize_t got;
	int left;

	req.head.nlmsg_flags |= NLM_F_DUMP;
	if (send(nl_fd, &req, req.head.nlmsg_len, 0) < 0)
		return errno;
	for (;;) {
		got = recv(nl_fd, answer, sizeof(answer), MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		left = got;
		for (struct nlmsghdr *h = (struct nlmsghdr *)answer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_seq != nl_seq)
				continue;
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return -((struct nlmsgerr *)NLMSG_DATA(h))->error;
			if (take)
				take(h);
		}
	}
}

/* Attributes behind a fixed header of @fixed bytes into @table of @max + 1 pointers. */
void nl_parse(const struct rtattr *attr, int left, const struct rtattr **table, int max)
{
	memset(table, 0, (max + 1) * sizeof(*table));
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if ((attr->rta_type & NLA_TYPE_MASK) <= max)
			table[attr->rta_type & NLA_TYPE_MASK] = attr;
}

/* A network namespace of its own, to which requests go from now on. */
void namespace_new(void)
{
	if (unshare(CLONE_NEWNET))
		die("a network namespace: %s", strerror(errno));
	nl_open();
}

/* ------------------------------------------------------------- fault injection */

static int fail_fd = -2;

/* Allocations fail on this thread: the @nth next one. Only on a kernel that can. */
void fault_arm(int nth)
{
	char text[16];

	if (fail_fd == -2)
		fail_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fail_fd < 0)
		return;
	snprintf(text, sizeof(text), "%d", nth);
	if (pwrite(fail_fd, text, strlen(text), 0) < 0)
		die("fail-nth: %s", strerror(errno));
}

/* Disarm; true if the failure happened. */
bool fault_disarm(void)
{
	char text[16] = "";
	bool hit;

	if (fail_fd < 0)
		return false;
	hit = pread(fail_fd, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;
	fault_arm(0);
	return hit;
}

void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "torture: %s: %s\n", path, strerror(errno));
	close(fd);
}
