// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel filters: the kernel's own checker takes every program that can be
 * built, and none is longer than its room. What they let through is tested with
 * packets (e2e.py, process.py).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feedback-daemon/capture/filter.h"

static int fd;
static unsigned int longest;

static int attach(const char *what, unsigned short len, struct sock_filter *prog)
{
	struct sock_fprog p = {.len = len, .filter = prog};

	if (len > longest)
		longest = len;
	if (len && len <= FILTER_INSNS &&
	    !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)))
		return 0;
	fprintf(stderr, "%s: %u instructions: %s\n", what, len, strerror(errno));
	return 1;
}

int main(void)
{
	static const uint32_t counts[] = {
		0, 1, 2, FILTER_FLOWS - 1, FILTER_FLOWS, FILTER_FLOWS + 1};
	struct sock_filter prog[FILTER_INSNS];
	struct filter_flows flows = {0};
	unsigned int i, mix, wrong = 0;
	char what[64];

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]) * 6; i++) {
		struct filter_devices devices = {.all = i & 1, .n = FILTER_DEVICES, .loopback = 1};
		unsigned int k;

		flows.n = counts[i / 6];
		mix = i % 3; /* IPv4, IPv6, both */
		/* all devices there, every other one, none */
		for (k = 0; k < FILTER_DEVICES; k++)
			devices.index[k] = mix == 0 || (mix == 1 && k & 1) ? 0x10000 + k : 0;
		for (k = 0; k < flows.n && k < FILTER_FLOWS; k++)
			flows.flow[k] = (struct filter_flow){
				.version = mix == 0 || (mix == 2 && k & 1) ? 4 : 6,
				.addr = 0xDA000000 + k,
				.ports = 0xFFFF0000 + k,
			};
		memset(prog, 0xFF, sizeof(prog));
		snprintf(what, sizeof(what), "%u flows, all %u, mix %u", flows.n, i & 1, mix);
		wrong += attach(what, filter_media(&devices, &flows, i & 1, prog), prog);
		memset(prog, 0xFF, sizeof(prog));
		wrong += attach("messages", filter_messages(&devices, prog), prog);
	}
	close(fd);
	printf("longest: %u of %d instructions\n", longest, FILTER_INSNS);
	return wrong != 0;
}
