// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into paqmd: the machine has slept for as many seconds as the file $PAQM_SLEPT says,
 * a 64-bit number that may change at any time. As after a true sleep CLOCK_BOOTTIME counts them
 * and CLOCK_MONOTONIC does not. Timers do not hear of it: something else has to wake paqmd.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *slept;

/* Before any system call is forbidden. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("PAQM_SLEPT");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p;

	if (fd < 0)
		return;
	p = mmap(NULL, sizeof(*slept), PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		slept = p;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int err = (int)syscall(SYS_clock_gettime, clock, t);

	if (!err && slept && clock == CLOCK_BOOTTIME)
		t->tv_sec += (time_t)*slept;
	return err;
}
