// SPDX-License-Identifier: GPL-2.0
/*
 * vclock.so: reads the clock once per wake-up. An LD_PRELOAD library for programs inside the lab
 * guest, which runs in virtual time (User-Mode Linux, time-travel=inf-cpu). Nowhere else.
 *
 * libwebrtc looks at the clock some 50 times per packet. On a common kernel that is free (vDSO);
 * under User-Mode Linux every look is a system call, and those are two thirds of all its calls.
 * But in virtual time the clock stands still while anything
 * can run: it moves on only once every thread sleeps. A value read stays right until a
 * thread of this process wakes from a wait that a timer or another process can end. So:
 * keep the value, and drop it when such a wait returns. Waits which only threads of this process
 * end (pthread_cond_wait, mutexes, sem_wait) need no hook: somebody of ours woke earlier.
 *
 * The kernel charges 256 ns per look at the clock so that loops which wait for time to pass come
 * to an end; for their sake, and for any wait not hooked here, a kept value is used at
 * most REUSE times.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REUSE 64
#define NSEC 1000000000LL

/* Kept time in nanoseconds, 0 for none; and how often it may still be used. */
static struct {
	_Atomic int64_t ns;
	_Atomic int left;
} kept[2];

static long (*raw_syscall)(long, ...);

static int slot_of(clockid_t clock)
{
	if (clock == CLOCK_REALTIME)
		return 0;
	return clock == CLOCK_MONOTONIC ? 1 : -1;
}

static void forget(void)
{
	atomic_store_explicit(&kept[0].ns, 0, memory_order_release);
	atomic_store_explicit(&kept[1].ns, 0, memory_order_release);
}

/* The default version by name: dlsym() alone may return the oldest pthread_cond_timedwait. */
static void *next(const char *name, const char *version)
{
	void *function = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

	return function ? function : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void init(void)
{
	raw_syscall = (long (*)(long, ...))next("syscall", NULL);
}

static int read_clock(clockid_t clock, struct timespec *ts)
{
	if (!raw_syscall)
		init();
	return (int)raw_syscall(SYS_clock_gettime, clock, ts);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int slot = slot_of(clock);
	int64_t ns;
	int ret;

	if (slot < 0)
		return read_clock(clock, ts);
	ns = atomic_load_explicit(&kept[slot].ns, memory_order_acquire);
	if (ns && atomic_fetch_sub_explicit(&kept[slot].left, 1, memory_order_relaxed) > 0) {
		ts->tv_sec = ns / NSEC;
		ts->tv_nsec = ns % NSEC;
		return 0;
	}
	ret = read_clock(clock, ts);
	if (!ret) {
		atomic_store_explicit(&kept[slot].left, REUSE, memory_order_relaxed);
		atomic_store_explicit(&kept[slot].ns, ts->tv_sec * NSEC + ts->tv_nsec,
				      memory_order_release);
	}
	return ret;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &ts))
		return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

/* One wait: the real function, then forget. Name, version or NULL, result type, parameters. */
#define WAIT(name, version, type, parameters, arguments)                                           \
	type name parameters                                                                       \
	{                                                                                          \
		static type(*real) parameters;                                                     \
		type ret;                                                                          \
		int err;                                                                           \
                                                                                                   \
		if (!real)                                                                         \
			real = (type(*) parameters)next(#name, version);                           \
		ret = real arguments;                                                              \
		err = errno;                                                                       \
		forget();                                                                          \
		errno = err;                                                                       \
		return ret;                                                                        \
	}

WAIT(epoll_wait, NULL, int, (int fd, struct epoll_event *events, int max, int timeout),
     (fd, events, max, timeout))
WAIT(epoll_pwait, NULL, int,
     (int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask),
     (fd, events, max, timeout, mask))
WAIT(poll, NULL, int, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
WAIT(ppoll, NULL, int,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
     (fds, count, timeout, mask))
WAIT(select, NULL, int,
     (int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
      struct timeval *restrict timeout),
     (count, in, out, except, timeout))
WAIT(pthread_cond_timedwait, "GLIBC_2.3.2", int,
     (pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
      const struct timespec *restrict until),
     (cond, mutex, until))
WAIT(pthread_cond_clockwait, NULL, int,
     (pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t clock,
      const struct timespec *restrict until),
     (cond, mutex, clock, until))
WAIT(sem_timedwait, NULL, int, (sem_t *restrict semaphore, const struct timespec *restrict until),
     (semaphore, until))
WAIT(nanosleep, NULL, int, (const struct timespec *time, struct timespec *rest), (time, rest))
WAIT(clock_nanosleep, NULL, int,
     (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest),
     (clock, flags, time, rest))
WAIT(usleep, NULL, int, (useconds_t time), (time))
WAIT(sleep, NULL, unsigned int, (unsigned int time), (time))
WAIT(waitpid, NULL, pid_t, (pid_t pid, int *status, int options), (pid, status, options))

/* Abseil's locks call futex through syscall(). */
long syscall(long number, ...)
{
	va_list list;
	long a[6];
	long ret;
	int err;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (!raw_syscall)
		init();
	ret = raw_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (number == SYS_futex) {
		err = errno;
		forget();
		errno = err;
	}
	return ret;
}
