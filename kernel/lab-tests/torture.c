// SPDX-License-Identifier: GPL-2.0
/*
 * Random tc operations on sch_paqm and around it, against traffic of all kinds.
 *
 * Runs as root in a lab guest with the modules loaded by itself, best on the
 * debug kernel; see torture.py. Work is cut into epochs: each has two namespaces
 * of its own and draws its random numbers from seed and epoch. After an epoch its
 * namespaces die: empty, or their devices go with packets in all queues, or they
 * outlive their processes for as long as packets hold them. Then the modules are
 * unloaded and loaded again. A run of a lab guest repeats exactly; a single epoch
 * (--first) nearly so, as the kernel's own random numbers differ.
 *
 * What fails the test:
 *  - any complaint of the kernel in its log, or a taint;
 *  - counters that contradict themselves: lengths below 0, packets without bytes,
 *    a class that has not what its qdisc has, a parent with less than its children,
 *    more sent and queued than arrived;
 *  - packets that stay in a queue though nothing is sent any more;
 *  - a module that cannot be unloaded, objects that kmemleak cannot reach.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "torture_beside.h"
#include "torture_kinds.h"
#include "torture_nl.h"
#include "torture_ops.h"
#include "torture_report.h"
#include "torture_state.h"
#include "torture_traffic.h"

#define EPOCH_OPS 1000
#define CHECK_OPS 100 /* counters are looked at after so many */
#define DRAIN_OPS 500 /* queues must run empty after so many */

/* ----------------------------------------------------------------------- epochs */

/* The other end of the wire: a namespace with a sink for streams. */
static pid_t peer_start(int *ready)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(SINK_PORT)};
	static char sink[1 << 16];
	struct pollfd fds[33];
	int to_peer[2], from_peer[2], count = 1;
	char byte = 0;
	pid_t pid;

	if (pipe2(to_peer, O_CLOEXEC) || pipe2(from_peer, O_CLOEXEC))
		die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid) {
		ready[0] = from_peer[0];
		ready[1] = to_peer[1];
		if (read(from_peer[0], &byte, 1) != 1)
			die("the peer did not start");
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	namespace_new();
	if (write(from_peer[1], &byte, 1) != 1 || read(to_peer[0], &byte, 1) != 1)
		_exit(0);
	device_up(if_nametoindex("v1"), true);
	address_add(if_nametoindex("v1"), PEER4);
	address_add(if_nametoindex("v1"), PEER6);
	fds[0].fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(fds[0].fd, (struct sockaddr *)&any, sizeof(any)) || listen(fds[0].fd, 16))
		die("the sink: %s", strerror(errno));
	if (write(from_peer[1], &byte, 1) != 1)
		_exit(0);
	for (;;) {
		for (int i = 0; i < count; i++)
			fds[i].events = POLLIN;
		poll(fds, count, -1);
		for (int i = count - 1; i > 0; i--)
			if (fds[i].revents && recv(fds[i].fd, sink, sizeof(sink), 0) <= 0) {
				close(fds[i].fd);
				fds[i] = fds[--count];
			}
		if (fds[0].revents & POLLIN && count < (int)ARRAY_SIZE(fds)) {
			fds[count].fd = accept4(fds[0].fd, NULL, NULL, SOCK_NONBLOCK);
			if (fds[count].fd >= 0)
				fds[count++].revents = 0;
		} else if (count == (int)ARRAY_SIZE(fds)) { /* dead ones of earlier */
			close(fds[1].fd);
			fds[1] = fds[--count];
		}
	}
}

static void epoch_run(uint32_t operations)
{
	int ready[2];
	char byte = 0;
	pid_t peer = peer_start(ready);

	namespace_new();
	kmsg_check();
	device_up(1, true);
	devices_create(peer);
	if (write(ready[1], &byte, 1) != 1 || read(ready[0], &byte, 1) != 1)
		die("the peer did not come up");
	traffic_open();
	for (int i = 0; i < DEVICES; i++) {
		if (chance(40))
			continue;
		tc_begin(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, devs[i].index, some_handle(),
			 TC_H_ROOT);
		nl_str(TCA_KIND, "paqm");
		if (chance(50))
			opt_paqm(true);
		nl_talk();
	}
	beside_start(args.beside);
	for (op_number = 0; op_number < operations; op_number++) {
		if (op_number % 10 == 0)
			look();
		one_operation();
		traffic();
		if (epoch >= args.each || op_number % CHECK_OPS == CHECK_OPS - 1)
			check();
		if (op_number % DRAIN_OPS == DRAIN_OPS - 1)
			drain();
	}
	op_number--;
	switch (rnd(3)) {
	case 0: /* the namespace outlives us until its queues are empty */
		for (int i = 0; i < 50; i++)
			traffic();
		check();
		hurry();
		break;
	case 1: /* the devices go with packets everywhere */
		for (int i = 0; i < 50; i++)
			traffic();
		check();
		for (int i = 0; i < DEVICES; i++) {
			link_begin(RTM_DELLINK, 0, devs[i].index);
			nl_talk();
		}
		break;
	default:
		drain();
	}
	fig->frames += tr.frames;
	fig->refused += tr.refused;
	fig->datagrams += tr.datagrams;
	fig->stream_bytes += tr.stream_bytes;
	fflush(stdout);
	_exit(0);
}

/*
 * Ask the kernel which widths and values of every attribute it takes. The ladder
 * has all powers of two and of ten and their neighbours.
 */
static void learn(void)
{
	static const int widths[] = {4, 8, 1, 2};
	uint64_t ladder[LADDER];
	int steps = 0, err;

	for (int i = 0; i < 64 && steps < LADDER - 1; i += i < 34 ? 1 : 6)
		ladder[steps++] = 1ULL << i;
	for (uint64_t v = 3; v < 1ULL << 40 && steps < LADDER; v *= 5)
		ladder[steps++] = v;
	ladder[steps < LADDER ? steps++ : LADDER - 1] = 0;
	for (int i = 1; i < steps; i++) /* insertion sort */
		for (int j = i; j > 0 && ladder[j] < ladder[j - 1]; j--) {
			uint64_t swap = ladder[j];

			ladder[j] = ladder[j - 1];
			ladder[j - 1] = swap;
		}
	for (int a = 2; a <= TCA_PAQM_MAX; a++) {
		struct known *k = &known[a];

		for (size_t w = 0; w < ARRAY_SIZE(widths) && k->count < 2; w++) {
			k->count = 0;
			k->width = widths[w];
			for (int s = 0; s < steps; s++) {
				struct rtattr *nest;

				if (k->width < 8 && ladder[s] >> (8 * k->width))
					continue;
				tc_begin(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE,
					 devs[D_DUMMY].index, 0x10000, TC_H_ROOT);
				nl_str(TCA_KIND, "paqm");
				nest = nl_nest(TCA_OPTIONS);
				nl_attr(a, &ladder[s], k->width);
				nl_end(nest);
				err = nl_talk();
				if (!err)
					k->value[k->count++] = ladder[s];
				tc_begin(RTM_DELQDISC, 0, devs[D_DUMMY].index, 0, TC_H_ROOT);
				nl_talk();
			}
		}
		if (!k->count)
			k->width = 0;
		printf("# attribute %d: %d values of %d bytes, %llu..%llu\n", a, k->count, k->width,
		       k->count ? (unsigned long long)k->value[0] : 0,
		       k->count ? (unsigned long long)k->value[k->count - 1] : 0);
	}
}

static void learn_in_child(struct known *shared)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		namespace_new();
		device_create(&devs[D_DUMMY], "dummy", 1, NULL, 0, 0);
		learn();
		memcpy(shared, known, sizeof(known));
		fflush(stdout);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("the options could not be learnt");
	memcpy(known, shared, sizeof(known));
}

static void summary(uint32_t epochs)
{
	struct timespec up = {0};
	uint64_t taken = 0;

	clock_gettime(CLOCK_BOOTTIME, &up);
	for (int i = 0; i < OPS; i++) {
		taken += fig->taken[i];
		printf("# %-14s %8lu tried %8lu accepted (%lu %%)\n", ops[i].name, fig->tried[i],
		       fig->taken[i], fig->tried[i] ? fig->taken[i] * 100 / fig->tried[i] : 0);
	}
	printf("# %ld s of the guest's time\n", (long)up.tv_sec);
	printf("{\"seed\": %lu, \"first_epoch\": %u, \"epochs\": %u, \"operations\": %lu, "
	       "\"accepted\": %lu, \"paqm_requests\": %lu, \"paqm_accepted\": %lu, "
	       "\"unanswered\": %lu, \"faults_armed\": %lu, \"faults_hit\": %lu, "
	       "\"frames\": %lu, \"frames_refused\": %lu, \"datagrams\": %lu, "
	       "\"stream_bytes\": %lu, \"drained\": %lu, \"foreign_stuck\": %lu, \"listings\": "
	       "%lu, \"paqm_seen\": %lu, "
	       "\"paqm_with_packets\": %lu, \"paqm_with_child\": %lu, \"most_qdiscs\": %lu, "
	       "\"media_bytes\": %lu, \"elastic_bytes\": %lu, \"notices\": %lu, \"drops\": %lu}\n",
	       args.seed, args.first, epochs, fig->ops, taken, fig->paqm_tried, fig->paqm_taken,
	       fig->unanswered, fig->faults_armed, fig->faults_hit, fig->frames, fig->refused,
	       fig->datagrams, fig->stream_bytes, fig->drains, fig->foreign, fig->looks,
	       fig->paqm_seen, fig->queued_seen, fig->with_child, fig->most_qdiscs,
	       fig->media_bytes, fig->elastic_bytes, fig->notices, fig->drops);
}

int main(int argc, char **argv)
{
	struct known *shared;
	uint32_t epochs = 0;
	int status;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--verbose")) {
			args.verbose = true;
			continue;
		}
		if (!strcmp(argv[i], "--seed"))
			args.seed = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "--ops"))
			args.ops = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "--first"))
			args.first = strtoul(value, NULL, 0);
		else if (!strcmp(argv[i], "--each"))
			args.each = strtoul(value, NULL, 0);
		else if (!strcmp(argv[i], "--beside"))
			args.beside = strtoul(value, NULL, 0);
		else
			die("usage: torture [--seed N] [--ops N] [--first EPOCH] [--each EPOCH] "
			    "[--beside SENDERS] [--verbose]");
		i++;
	}
	args.modules = getenv("PAQM_KO_DIR");
	if (!args.modules)
		die("PAQM_KO_DIR does not name the modules' directory; use paqm-lab exec");
	signal(SIGPIPE, SIG_IGN);
	fig = mmap(NULL, sizeof(*fig), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared = mmap(NULL, sizeof(known), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (fig == MAP_FAILED || shared == MAP_FAILED)
		die("no memory");
	write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	write_file("/sys/kernel/debug/failslab/verbose", "0");
	fault_state = list_queues;
	kmsg_open();
	modules_insert();
	learn_in_child(shared);
	kmsg_check();
	for (epoch = args.first; fig->ops < args.ops; epoch++, epochs++) {
		uint64_t left = args.ops - fig->ops;
		pid_t pid;

		fflush(stdout);
		rng_seed(args.seed, epoch);
		pid = fork();
		if (!pid)
			epoch_run(left < EPOCH_OPS ? left : EPOCH_OPS);
		if (waitpid(pid, &status, 0) != pid)
			die("waitpid: %s", strerror(errno));
		if (WIFEXITED(status) && WEXITSTATUS(status))
			return WEXITSTATUS(status);
		if (status)
			fail("the epoch was killed by signal %d", WTERMSIG(status));
		modules_remove();
		kmsg_check();
		modules_insert();
		printf("# %lu of %lu operations\n", fig->ops, args.ops);
	}
	modules_remove();
	leaks_check();
	kmsg_check();
	summary(epochs);
	printf("ok torture: %lu operations in %u epochs of seed %lu, no report\n", fig->ops, epochs,
	       args.seed);
	return 0;
}
