// SPDX-License-Identifier: GPL-2.0
/* Privileges; see sandbox.h. */
#define _GNU_SOURCE /* setresuid */
#include "feedback-daemon/host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <pwd.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"

int sandbox_option(const char *word, bool *on)
{
	*on = strcmp(word, "no");
	if (!*on || !strcmp(word, "yes"))
		return 0;
	log_line("--sandbox %s: must be yes or no", word);
	return -1;
}

bool sandbox_has_user(const char *name, char *why, size_t size)
{
	if (!strcmp(name, SANDBOX_USER) || getpwnam(name))
		return true;
	snprintf(why, size, "user %s: does not exist; see useradd(8)", name);
	return false;
}

int sandbox_user(const char *name, struct sandbox_user *u)
{
	const struct passwd *p;
	char why[256];

	*u = (struct sandbox_user){.uid = geteuid(), .gid = getegid()};
	if (geteuid())
		return 0;
	if (!sandbox_has_user(name, why, sizeof(why))) {
		log_line("%s", why);
		return -1;
	}
	p = getpwnam(name);
	if (!p) {
		p = getpwnam("nobody");
		log_line("user %s: does not exist%s; see systemd-sysusers(8), or choose another "
			 "with 'user'",
			 name, p ? ", running as nobody" : "");
		if (!p)
			return -1;
	}
	*u = (struct sandbox_user){.uid = p->pw_uid, .gid = p->pw_gid, .change = true};
	return 0;
}

/* The kernel's interface: what is wanted of it is not worth a library. */
static int keep_cap(int cap)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	if (cap != SANDBOX_NO_CAP) {
		d[CAP_TO_INDEX(cap)].permitted = CAP_TO_MASK(cap);
		d[CAP_TO_INDEX(cap)].effective = CAP_TO_MASK(cap);
	}
	return (int)syscall(SYS_capset, &h, d);
}

static int drop(const struct sandbox_user *u, const gid_t *group, int keep)
{
	int cap;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -1;
	if (u->change) {
		if (keep != SANDBOX_NO_CAP && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
			return -1;
		for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
			if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
				return -1;
		if (setgroups(group ? 1 : 0, group) || setresgid(u->gid, u->gid, u->gid) ||
		    setresuid(u->uid, u->uid, u->uid))
			return -1;
	}
	if (keep_cap(keep))
		return -1;
	/* Nobody of this user may look into the process either. */
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int sandbox_drop(const struct sandbox_user *u, const gid_t *group, int cap)
{
	if (!drop(u, group, cap))
		return 0;
	log_line("cannot drop privileges to uid %u: %s%s", (unsigned int)u->uid, strerror(errno),
		 u->change && errno == EPERM
			 ? "; root needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP for that: give "
			   "them, or start it as another user"
			 : "");
	return -1;
}

/* Some machines have a call of its own where others use a general one (recv of ARM), and those of
 * 32 bits have further ones for large files and for times after 2038: the C library picks. So all
 * of its ways to do a thing are listed.
 */

/* What all need: to end, to tell the time, to manage memory. */
static const int all[] = {
	SCMP_SYS(brk),		SCMP_SYS(clock_gettime),   SCMP_SYS(clock_gettime64),
	SCMP_SYS(exit),		SCMP_SYS(exit_group),	   SCMP_SYS(futex),
	SCMP_SYS(futex_time64), SCMP_SYS(getpid),	   SCMP_SYS(getsockopt),
	SCMP_SYS(madvise),	SCMP_SYS(mremap),	   SCMP_SYS(munmap),
	SCMP_SYS(read),		SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
};

/* One thread: clients, packets that others have captured, files to read, lines of log. */
static const int worker[] = {
	SCMP_SYS(_llseek),
	SCMP_SYS(accept4),
	SCMP_SYS(close),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(fcntl),
	SCMP_SYS(fcntl64),
	SCMP_SYS(fstat),
	SCMP_SYS(fstat64),
	SCMP_SYS(fstatat64),
	SCMP_SYS(geteuid),
	SCMP_SYS(geteuid32),
	SCMP_SYS(getrandom),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(lseek),
	SCMP_SYS(newfstatat),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(ppoll_time64),
	SCMP_SYS(recv),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(send),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(statx),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(timerfd_settime64),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(write),
};

static const int capturer[] = {
	SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(poll),
	SCMP_SYS(ppoll),	   SCMP_SYS(ppoll_time64),
};

/* Sockets that it has, a timer, lines of log, and what it says at the end. */
static const int neighbour[] = {
	SCMP_SYS(fstat),    SCMP_SYS(fstat64), SCMP_SYS(fstatat64),    SCMP_SYS(newfstatat),
	SCMP_SYS(poll),	    SCMP_SYS(ppoll),   SCMP_SYS(ppoll_time64), SCMP_SYS(recv),
	SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(send),	       SCMP_SYS(sendto),
	SCMP_SYS(statx),    SCMP_SYS(write),
};

/* Connections of others, words for them, lines of log, and what it says at the end. */
static const int meeting[] = {
	SCMP_SYS(accept4),	SCMP_SYS(close),      SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait),	SCMP_SYS(fstat),      SCMP_SYS(fstat64),   SCMP_SYS(fstatat64),
	SCMP_SYS(getrandom),	SCMP_SYS(newfstatat), SCMP_SYS(poll),	   SCMP_SYS(ppoll),
	SCMP_SYS(ppoll_time64), SCMP_SYS(recv),	      SCMP_SYS(recvfrom),  SCMP_SYS(send),
	SCMP_SYS(sendto),	SCMP_SYS(shutdown),   SCMP_SYS(statx),	   SCMP_SYS(write),
};

static int allow(scmp_filter_ctx ctx, const int *calls, size_t n)
{
	size_t i;
	int err;

	for (i = 0; i < n; i++) {
		err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
		/* This machine may not have the call at all. */
		if (err && err != -EDOM)
			return err;
	}
	return 0;
}

#define ALLOW(ctx, calls) allow(ctx, calls, sizeof(calls) / sizeof((calls)[0]))

static int allow_if(scmp_filter_ctx ctx, int call, unsigned int n, const struct scmp_arg_cmp *arg)
{
	int err = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, call, n, arg);

	return err == -EDOM ? 0 : err;
}

/* Memory is never made executable. */
static int allow_memory(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp plain = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	int err = allow_if(ctx, SCMP_SYS(mmap), 1, &plain);

	if (!err)
		err = allow_if(ctx, SCMP_SYS(mmap2), 1, &plain);
	return err ? err : allow_if(ctx, SCMP_SYS(mprotect), 1, &plain);
}

static int allow_worker(scmp_filter_ctx ctx)
{
	/* Files are opened to be read; a client's send buffer is made small. */
	const struct scmp_arg_cmp reading =
		SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
	const struct scmp_arg_cmp sndbuf[2] = {SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
					       SCMP_A2(SCMP_CMP_EQ, SO_SNDBUF)};
	int err = ALLOW(ctx, worker);

	if (!err)
		err = allow_if(ctx, SCMP_SYS(openat), 1, &reading);
	return err ? err : allow_if(ctx, SCMP_SYS(setsockopt), 2, sndbuf);
}

/* The other two have sockets that send what is written to them. They may write to one descriptor
 * that is none of these; and its number stays what it is, for they can neither open, close nor
 * copy one.
 */
static int allow_to(scmp_filter_ctx ctx, int call, int fd)
{
	const struct scmp_arg_cmp there = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)fd);

	return allow_if(ctx, call, 1, &there);
}

static int allow_capturer(scmp_filter_ctx ctx, int out)
{
	int err = ALLOW(ctx, capturer);

	return err ? err : allow_to(ctx, SCMP_SYS(write), out);
}

static int allow_opener(scmp_filter_ctx ctx, int asker)
{
	const struct scmp_arg_cmp index = SCMP_A1(SCMP_CMP_EQ, SIOCGIFINDEX);
	const struct scmp_arg_cmp filter[2] = {SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
					       SCMP_A2(SCMP_CMP_EQ, SO_ATTACH_FILTER)};
	const struct scmp_arg_cmp leaving[2] = {SCMP_A1(SCMP_CMP_EQ, SOL_PACKET),
						SCMP_A2(SCMP_CMP_EQ, PACKET_IGNORE_OUTGOING)};
	static const int words[] = {SCMP_SYS(recv), SCMP_SYS(recvfrom), SCMP_SYS(send),
				    SCMP_SYS(sendto)};
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(words) / sizeof(words[0]) && !err; i++)
		err = allow_to(ctx, words[i], asker);
	if (!err)
		err = allow_if(ctx, SCMP_SYS(ioctl), 1, &index);
	if (!err)
		err = allow_if(ctx, SCMP_SYS(setsockopt), 2, leaving);
	return err ? err : allow_if(ctx, SCMP_SYS(setsockopt), 2, filter);
}

int sandbox_filter(enum sandbox_shape shape, int to)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = ctx ? ALLOW(ctx, all) : -ENOMEM;

	if (!err)
		err = allow_memory(ctx);
	if (!err)
		err = shape == SANDBOX_OPENER	   ? allow_opener(ctx, to)
		      : shape == SANDBOX_CAPTURER  ? allow_capturer(ctx, to)
		      : shape == SANDBOX_NEIGHBOUR ? ALLOW(ctx, neighbour)
		      : shape == SANDBOX_MEET	   ? ALLOW(ctx, meeting)
						   : allow_worker(ctx);
	if (!err)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	if (!err)
		return 0;
	log_line("cannot restrict system calls: %s; use a kernel with CONFIG_SECCOMP_FILTER, or "
		 "'sandbox no'",
		 strerror(-err));
	return -1;
}
