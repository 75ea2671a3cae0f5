// SPDX-License-Identifier: GPL-2.0
/*
 * Senders and sink of the acceptance checks (spec.py). Run inside a lab guest, where time is
 * virtual: a sender keeps its schedule to the nanosecond and costs no time.
 *
 *	spec_traffic send ...	UDP flows, constant or Poisson, fixed or following the advice of the
 *				router (ICMP, docs/protocol.md) after a lag of their own; or what
 *				paqmd makes of the advice of several (feedback-daemon/paqm_ipc.h)
 *	spec_traffic sink ...	receives them: rates on the link, waiting times, series
 *
 * Sizes and rates are those of IP packets. Every payload carries its time of sending, so the
 * sink measures delays without the statistics of the queue under test. Both end with one JSON
 * object on standard output.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "kernel/lab-tests/spec_traffic.h"

int main(int argc, char **argv)
{
	prctl(PR_SET_TIMERSLACK, 1);
	if (argc > 1 && !strcmp(argv[1], "send"))
		return send_main(argv + 1);
	if (argc > 1 && !strcmp(argv[1], "sink"))
		return sink_main(argv + 1);
	fputs("usage: spec_traffic send|sink OPTION...\n", stderr);
	return 2;
}
