// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel filter: the kernel's own checker takes every program that can be
 * built, and none is longer than its room. What they let through is tested with
 * packets (e2e.py, process.py).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feedback-daemon/filter.h"

int main(void)
{
	static const uint32_t counts[] = {
		0, 1, 2, FILTER_FLOWS - 1, FILTER_FLOWS, FILTER_FLOWS + 1};
	struct sock_filter prog[FILTER_INSNS];
	unsigned int i, all, mix, longest = 0;
	struct filter_flows flows = {0};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]) * 6; i++) {
		struct sock_fprog p = {.filter = prog};
		unsigned int k;

		flows.n = counts[i / 6];
		all = i & 1;
		mix = i % 3; /* IPv4, IPv6, both */
		for (k = 0; k < flows.n && k < FILTER_FLOWS; k++)
			flows.flow[k] = (struct filter_flow){
				.version = mix == 0 || (mix == 2 && k & 1) ? 4 : 6,
				.addr = 0x0A000000 + k,
				.ports = k,
			};
		memset(prog, 0xFF, sizeof(prog));
		p.len = filter_build(&flows, all, prog);
		if (p.len > longest)
			longest = p.len;
		if (p.len > FILTER_INSNS ||
		    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p))) {
			fprintf(stderr, "%u flows, all %u, mix %u: %u instructions: %s\n", flows.n,
				all, mix, p.len, strerror(errno));
			return 1;
		}
	}
	close(fd);
	printf("longest: %u of %d instructions\n", longest, FILTER_INSNS);
	return 0;
}
