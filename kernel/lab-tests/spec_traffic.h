/* SPDX-License-Identifier: GPL-2.0 */
/* What sender and sink of spec_traffic share. */
#ifndef PAQM_SPEC_TRAFFIC_H
#define PAQM_SPEC_TRAFFIC_H

#define PROGRAM "spec_traffic"
#include "testbed/guest/traffic.h"

#define STAMP 12 /* offset of the time of sending: behind an RTP header */
#define LEAST (HEADERS + STAMP + 8)

/* Each ends the program if it cannot do what it is for. */
int udp_socket(void);
void force_buffer(int fd, int option, int bytes);
void bind_port(int fd, int port);

/* The modes: status of the program. */
int send_main(int argc, char **argv);
int sink_main(int argc, char **argv);

#endif /* PAQM_SPEC_TRAFFIC_H */
