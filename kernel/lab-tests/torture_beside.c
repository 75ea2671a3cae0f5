// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic of the torture test beside its operations: processes that send all the time, so
 * that on a machine with several processors packets come while a qdisc is changed, listed,
 * emptied and destroyed. They rest while queues are counted. On one processor, in virtual time,
 * they would never let the clock go on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "torture_beside.h"
#include "torture_nl.h"
#include "torture_ops.h"
#include "torture_report.h"
#include "torture_state.h"
#include "torture_traffic.h"

#define REST_US 120000000

/* Shared with the processes that send. */
static struct {
	bool rest;
	int resting;
} *shared;

static int senders;

static void count_sent(void)
{
	__atomic_fetch_add(&fig->frames, tr.frames, __ATOMIC_RELAXED);
	__atomic_fetch_add(&fig->refused, tr.refused, __ATOMIC_RELAXED);
	__atomic_fetch_add(&fig->datagrams, tr.datagrams, __ATOMIC_RELAXED);
	__atomic_fetch_add(&fig->stream_bytes, tr.stream_bytes, __ATOMIC_RELAXED);
	tr.frames = tr.refused = tr.datagrams = tr.stream_bytes = 0;
}

static void __attribute__((noreturn)) send_on(void)
{
	for (;;) {
		struct device *d = &devs[rnd(DEVICES)];

		if (__atomic_load_n(&shared->rest, __ATOMIC_ACQUIRE)) {
			traffic_quiet();
			count_sent();
			__atomic_fetch_add(&shared->resting, 1, __ATOMIC_RELEASE);
			while (__atomic_load_n(&shared->rest, __ATOMIC_ACQUIRE))
				sleep_us(1000);
			__atomic_fetch_sub(&shared->resting, 1, __ATOMIC_RELEASE);
		}
		/* an operation may have made the device anew */
		d->index = if_nametoindex(d->name);
		burst();
	}
}

/* `count` processes that send, each with sockets and random numbers of its own. */
void beside_start(int count)
{
	if (!count)
		return;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		die("--beside needs a second processor");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		die("no memory");
	for (senders = 0; senders < count; senders++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rng_seed(args.seed, ((uint64_t)senders + 1) << 32 | epoch);
		traffic_open();
		send_on();
	}
}

/* Stop them, and wait until all have stopped; or let them go on. */
void beside_rest(bool rest)
{
	uint64_t waited = 0;

	if (!senders)
		return;
	__atomic_store_n(&shared->rest, rest, __ATOMIC_RELEASE);
	for (; __atomic_load_n(&shared->resting, __ATOMIC_ACQUIRE) != (rest ? senders : 0);
	     waited += 1000) {
		if (waited > REST_US)
			fail("a process that sends does not hear");
		sleep_us(1000);
	}
}

bool beside_rests(void)
{
	return senders && __atomic_load_n(&shared->rest, __ATOMIC_RELAXED);
}
