// SPDX-License-Identifier: GPL-2.0
/* Frames of the applications with five levels; see levels.h. Rates and sizes are the thesis'. */
#include "streamer/trace/levels.h"

#include <string.h>

#define NS 1000000000.0
#define PICTURES 30 /* a second, at the highest level */

/* Of the example trace: bytes of a picture, headers included. */
#define I_BYTES 11000
#define P_BYTES 8000
#define B_BYTES 2000

const struct levels_app levels_apps[] = {
	{"mm",
	 "frames of one packet, 300 to 1100 kbit/s",
	 {300e3, 500e3, 700e3, 900e3, 1100e3},
	 NULL,
	 1000,
	 0},
	{"mpeg",
	 "IBBPBBPBB, 293 to 1040 kbit/s",
	 {293e3, 507e3, 720e3, 880e3, 1040e3},
	 "IBBPBBPBB",
	 1500,
	 300},
	{"mpeg12",
	 "IBBPBBPBBPBB, 220 to 1020 kbit/s",
	 {220e3, 380e3, 700e3, 860e3, 1020e3},
	 "IBBPBBPBBPBB",
	 1500,
	 400},
	{0},
};

const struct levels_app *levels_find(const char *name)
{
	const struct levels_app *app = levels_apps;

	while (app->name && strcmp(app->name, name) != 0)
		app++;
	return app->name ? app : NULL;
}

int levels_at(const struct levels_app *app, double rate)
{
	int level = LEVELS - 1;

	while (level && app->rate[level] > rate)
		level--;
	return level;
}

int64_t levels_step_ns(const struct levels_app *app, unsigned int packet, double rate)
{
	return (int64_t)(NS * (app->pattern ? 1.0 / PICTURES : 8 * packet / rate));
}

/* Which pictures a level has: I; the first P too; all P; the first B of each pair; all. */
unsigned int levels_frame(const struct levels_app *app, unsigned int packet, unsigned int tick,
			  int level)
{
	const char *p = app->pattern;
	size_t at;

	if (!p)
		return packet;
	at = tick % strlen(p);
	switch (p[at]) {
	case 'I':
		return I_BYTES;
	case 'P':
		return level >= 2 || (level == 1 && p + at == strchr(p, 'P')) ? P_BYTES : 0;
	default:
		return level == 4 || (level == 3 && p[at - 1] != 'B') ? B_BYTES : 0;
	}
}

double levels_pause(const struct levels_app *app, unsigned int packet)
{
	return app->pattern ? app->pause_ms / 1e3 : 8 * packet / app->rate[0];
}
