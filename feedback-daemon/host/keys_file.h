/* SPDX-License-Identifier: GPL-2.0 */
/* The file that keys are read from, and who may read it. */
#ifndef PAQMD_KEYS_FILE_H
#define PAQMD_KEYS_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "feedback-daemon/judge/keys.h"

/**
 * keys_load() - read a keys file
 * @path: must be a plain file of root, this user or @user which nobody else may read or write;
 *        or a credential, in $CREDENTIALS_DIRECTORY
 * @user: whom this process is going to be; or the same as geteuid()
 * @ring: set to the keys; empty on failure
 * @error: text for people, names file and line
 * @size: of @error
 *
 * Return: 0 or -1.
 */
int keys_load(const char *path, uid_t user, struct keyring *ring, char *error, size_t size);

#endif /* PAQMD_KEYS_FILE_H */
