// SPDX-License-Identifier: GPL-2.0
/* Fuzz target: the configuration file. What comes out of it can be used as it is. */
#include <stdlib.h>
#include <string.h>

#include "feedback-daemon/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	unsigned int mistakes, line;
};

static void report(void *data, unsigned int line, const char *why)
{
	struct seen *s = data;

	/* in the order of the file, and with words */
	if (!line || line < s->line || !*why)
		abort();
	s->line = line;
	s->mistakes++;
}

static void check(const char *text, size_t size)
{
	if (!memchr(text, 0, size))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen s = {0};
	struct conf c, again;
	unsigned int i;

	conf_default(&c);
	if (conf_parse(&c, (const char *)data, size, report, &s) != s.mistakes)
		abort();
	if (!c.ifaces || c.ifaces > CONF_IFACES)
		abort();
	for (i = 0; i < c.ifaces; i++) {
		check(c.iface[i], sizeof(c.iface[i]));
		if (!c.iface[i][0])
			abort();
	}
	check(c.socket, sizeof(c.socket));
	check(c.control, sizeof(c.control));
	check(c.user, sizeof(c.user));
	check(c.group, sizeof(c.group));
	if (c.socket[0] != '/' || c.control[0] != '/' || !c.user[0])
		abort();
	if (s.mistakes)
		return 0;
	/* The same file gives the same settings. */
	conf_default(&again);
	if (conf_parse(&again, (const char *)data, size, report, &s) ||
	    memcmp(c.iface, again.iface, sizeof(c.iface)) || c.use != again.use)
		abort();
	return 0;
}
