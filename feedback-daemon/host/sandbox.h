/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the daemons drop what they do not need: user, capabilities, system calls.
 * No process of paqmd keeps a capability. Its opener may set filters and answer, the
 * capturer read and write to one pipe, the worker serve its clients. rlqosd, the neighbour,
 * keeps CAP_NET_ADMIN, without which no queue can be told, and uses the sockets that it has.
 * paqm-meet keeps nothing, and can open no file and no connection.
 */
#ifndef PAQMD_SANDBOX_H
#define PAQMD_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum sandbox_shape {
	SANDBOX_OPENER,
	SANDBOX_CAPTURER,
	SANDBOX_WORKER,
	SANDBOX_NEIGHBOUR,
	SANDBOX_MEET
};

#define SANDBOX_USER "paqm" /* unless another one is named */
#define SANDBOX_NO_CAP (-1)

/* The user to run as; only a process started as root changes. */
struct sandbox_user {
	uid_t uid;
	gid_t gid;
	bool change;
};

/**
 * sandbox_option() - read what follows --sandbox
 * @word: yes or no
 * @on: filled in
 *
 * Return: 0, or -1 after having logged that it is neither.
 */
int sandbox_option(const char *word, bool *on);

/**
 * sandbox_has_user() - is there a user to become?
 * @name: of the configuration; who is named is meant, only SANDBOX_USER may be missing
 * @why: filled in if not
 * @size: of @why, bytes
 */
bool sandbox_has_user(const char *name, char *why, size_t size);

/**
 * sandbox_user() - look up the user
 * @name: of the configuration
 * @u: filled in
 *
 * Without the usual user (SANDBOX_USER) the daemon runs as "nobody" and logs that; any other must
 * exist. Return: 0, or -1 after having logged why not.
 */
int sandbox_user(const char *name, struct sandbox_user *u);

/**
 * sandbox_drop() - become the user, drop capabilities, never gain any again
 * @u: who to become
 * @group: a supplementary group to keep
 * @cap: the capability to keep, SANDBOX_NO_CAP: none
 *
 * Return: 0, or -1 after having logged why not.
 */
int sandbox_drop(const struct sandbox_user *u, const gid_t *group, int cap);

/**
 * sandbox_filter() - allow only the system calls that the shape needs
 * @shape: what the process is
 * @to: the only descriptor that the opener and the capturer may write to
 *
 * Others fail with EPERM. Return: 0, or -1 after having logged why not.
 */
int sandbox_filter(enum sandbox_shape shape, int to);

#endif /* PAQMD_SANDBOX_H */
