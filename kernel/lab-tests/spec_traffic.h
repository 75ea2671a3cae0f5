/* SPDX-License-Identifier: GPL-2.0 */
/* What sender and sink of spec_traffic share. */
#ifndef PAQM_SPEC_TRAFFIC_H
#define PAQM_SPEC_TRAFFIC_H

#include <stdbool.h>

#define PROGRAM "spec_traffic"
#include "testbed/guest/traffic.h"

#define STAMP 12 /* offset of the time of sending: behind an RTP header */
#define LEAST (HEADERS + STAMP + 8)

/* Each ends the program if it cannot do what it is for. */
int udp_socket(void);
void force_buffer(int fd, int option, int bytes);
void bind_port(int fd, int port);

/* An option: a switch, a word, or a number within bounds. */
struct option_of {
	const char *name;
	bool *on;
	const char **word;
	double *number, least, most;
};

/* All of the command line but its first word, by a table that ends without a name. */
void parse_options(char **argv, const struct option_of *table);
/* Which of the words @wanted, one after the other, the value of option --@name is. */
int one_of(const char *name, const char *value, const char *const *wanted);

/* The modes: status of the program. */
int send_main(char **argv);
int sink_main(char **argv);

#endif /* PAQM_SPEC_TRAFFIC_H */
