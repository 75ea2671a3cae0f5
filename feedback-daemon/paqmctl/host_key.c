// SPDX-License-Identifier: GPL-2.0
/* Whoever reads the line of a host can speak to no other host; see host_key.h. */
#include "feedback-daemon/paqmctl/host_key.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "feedback-daemon/judge/keys.h"

int host_key(const char *text)
{
	uint8_t own[PAQM_SIPHASH_KEY];
	char line[KEYS_FILE_MAX];
	static struct keyring ring;
	struct addr addr = {{0}};
	const char *fault;
	unsigned int at, i, b;
	size_t n;

	if (inet_pton(AF_INET, text, addr.b + 12) == 1) {
		addr.b[10] = addr.b[11] = 0xFF;
	} else if (inet_pton(AF_INET6, text, addr.b) != 1) {
		fprintf(stderr,
			"paqmctl: host-key %s: must be the address that routers see the host at, "
			"IPv4 or IPv6\n",
			text);
		return 2;
	}
	if (isatty(STDIN_FILENO))
		fputs("paqmctl: enter the router's line: ROUTER-ID|* KEY-ID HEX\n", stderr);
	n = fread(line, 1, sizeof(line), stdin);
	fault = ferror(stdin) ? strerror(errno) : keys_parse(line, n, &ring, &at);
	explicit_bzero(line, sizeof(line));
	if (!fault && !ring.n)
		fault = "contains no key";
	for (i = 0; !fault && i < ring.n; i++)
		if (ring.key[i].host)
			fault = "one of the keys is a host's own already: derive from the router's "
				"key";
	for (i = 0; !fault && i < ring.n; i++) {
		const struct key *k = &ring.key[i];

		keys_derive(k->bytes, &addr, own);
		if (k->any)
			printf("* %u ", k->id);
		else
			printf("%llx %u ", (unsigned long long)k->router, k->id);
		for (b = 0; b < sizeof(own); b++)
			printf("%02x", own[b]);
		puts(" host");
	}
	explicit_bzero(own, sizeof(own));
	keys_wipe(&ring);
	if (fault)
		fprintf(stderr, "paqmctl: host-key: standard input: %s\n", fault);
	else if (fflush(stdout))
		fprintf(stderr, "paqmctl: cannot write the output: %s\n", strerror(errno));
	else
		return 0;
	return 1;
}
