/* SPDX-License-Identifier: GPL-2.0 */
/* What the modes of load share: options, addresses, waiting. */
#ifndef PAQM_LOAD_H
#define PAQM_LOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define PROGRAM "load"
#include "testbed/guest/traffic.h"

#define RTP 12
#define STAMP (RTP + 8) /* payload up to and with the time of sending */
#define LEAST (HEADERS + STAMP)
#define FLOWS_MAX 2000
#define SSRCS_MAX 256
#define PORTS_MAX 1000

struct options {
	const char *to, *algorithm, *log;
	int port, ports, flows, size, kind, ssrcs, ect, low, high;
	double rate, off_rate, on_ms, off_ms, burst_ms, ports_per_s, ssrc_per_s, per_s, late_ms;
	double pareto;
	bool lasting;
	int64_t epoch, from, until;
	unsigned short random[3];
};

/* Until @when, ns of the wall clock. */
void sleep_until(int64_t when);
/* @host NULL: any of our own. Ends the program if it is no IPv4 address. */
struct sockaddr_in address(const char *host, int port);
/* Ends the program if the port is not to be had. */
void must_bind(int fd, int port);

/* The modes: status of the program. */
int udp_main(struct options *o);
int idle_main(struct options *o);
int sink_main(struct options *o);
int web_main(struct options *o);
int websink_main(struct options *o);

#endif /* PAQM_LOAD_H */
