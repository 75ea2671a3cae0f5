/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings of paqmd. The file and the command line use the same words through
 * one table: "use ecf" in the file is "--use ecf" on the command line. What
 * parses is pure, so that tests and fuzzers run it as it is.
 */
#ifndef PAQMD_CONF_H
#define PAQMD_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feedback-daemon/judge/allow.h"

#define CONF_PATH "/etc/paqm/paqmd.conf"
#define CONF_IFACES 8
#define CONF_IFACE_LEN 16 /* IFNAMSIZ */
#define CONF_NAME_LEN 33  /* users and groups */
#define CONF_PATH_LEN 108 /* of a socket */
#define CONF_FILE_MAX 65536
#define CONF_WHY 256

/* Words of the file and the command line: name, argument, what it does. */
#define CONF_KEYS(X)                                                                               \
	X(INTERFACE, "interface", "IFACE")                                                         \
	X(SOCKET, "socket", "PATH")                                                                \
	X(CONTROL, "control", "PATH")                                                              \
	X(USER, "user", "USER")                                                                    \
	X(GROUP, "group", "GROUP")                                                                 \
	X(KEYS, "keys", "FILE")                                                                    \
	X(REQUIRE_AUTH, "require-auth", "yes|no")                                                  \
	X(USE, "use", "WHAT")                                                                      \
	X(LEGACY, "legacy", "yes|no")                                                              \
	X(SANDBOX, "sandbox", "yes|no")                                                            \
	X(VERBOSE, "verbose", "yes|no")

enum conf_key {
#define X(name, text, arg) CONF_##name,
	CONF_KEYS(X)
#undef X
		CONF_KEYS_MAX
};

struct conf {
	char iface[CONF_IFACES][CONF_IFACE_LEN];
	unsigned int ifaces;
	char socket[CONF_PATH_LEN];  /* of media senders */
	char control[CONF_PATH_LEN]; /* of paqmctl */
	char user[CONF_NAME_LEN];
	char group[CONF_NAME_LEN]; /* empty: none */
	char keys[CONF_PATH_LEN];  /* of routers; empty: none */
	bool require_auth;
	enum allow_use use;
	bool legacy; /* believe Source Quench without object */
	bool sandbox;
	bool verbose;
};

/* Called for each mistake: the line it is in (from 1) and what to do about it. */
typedef void (*conf_report)(void *data, unsigned int line, const char *why);

/* The defaults without file and options; they include $PAQM_SOCKET and $PAQM_CONTROL. */
void conf_default(struct conf *c);

/* Return: the word of @key as it stands in the file. */
const char *conf_name(enum conf_key key);

/* Return: whether it is yes or no. On the command line its name alone means yes. */
bool conf_is_flag(enum conf_key key);

/**
 * conf_set() - take over one setting
 * @c: settings
 * @key: which
 * @value: its value
 * @seen: keys that this file or command line has set so far, a bit each; the
 *        first interface it names replaces those that were there
 * @why: what is wrong with the value
 *
 * Return: true, or false with @why filled in and nothing changed.
 */
bool conf_set(struct conf *c, enum conf_key key, const char *value, uint32_t *seen,
	      char why[CONF_WHY]);

/**
 * conf_parse() - take over the contents of a file
 * @c: settings
 * @text: the file; not terminated, any bytes
 * @len: its length
 * @report: called for each mistake
 * @data: for @report
 *
 * Return: the number of mistakes.
 */
unsigned int conf_parse(struct conf *c, const char *text, size_t len, conf_report report,
			void *data);

/**
 * conf_load() - read a file
 * @c: settings
 * @path: the file
 * @must: whether a missing file is a mistake
 * @report: called for each mistake; line 0 is about the file as such
 * @data: for @report
 *
 * Return: the number of mistakes.
 */
unsigned int conf_load(struct conf *c, const char *path, bool must, conf_report report, void *data);

#endif /* PAQMD_CONF_H */
