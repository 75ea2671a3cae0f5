// SPDX-License-Identifier: GPL-2.0
/* Only a file that no one else can read or write is accepted; see keys_file.h. */
#include "feedback-daemon/host/keys_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Has the service manager put it there (systemd.exec(5), LoadCredential=)? It is a file of root
 * then, in a directory into which nobody but the service's user gets.
 */
static bool is_credential(const char *path)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	size_t n = dir ? strlen(dir) : 0;
	struct stat st;

	if (!n || *dir != '/' || strncmp(path, dir, n) || path[n] != '/' ||
	    strchr(path + n + 1, '/'))
		return false;
	return !stat(dir, &st) && S_ISDIR(st.st_mode) && !st.st_uid && !(st.st_mode & 027);
}

/* Why a file must not hold keys, or NULL. */
static const char *file_fault(const struct stat *st, uid_t user, const char *path)
{
	/* The user of the service reads a credential by an access list: what stands where the
	 * group's bits are is the most that an entry grants, and the group itself is root's.
	 */
	mode_t closed = !st->st_uid && !st->st_gid && is_credential(path) ? 037 : 077;

	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_uid && st->st_uid != geteuid() && st->st_uid != user)
		return "belongs to another user: chown it to root or to paqmd's user";
	if (st->st_mode & closed)
		return "may be read or written by others: chmod 600";
	if (st->st_size > KEYS_FILE_MAX)
		return "has more than 65536 bytes";
	return NULL;
}

/* All of @fd. Return: bytes, or -1 with errno. */
static ssize_t slurp(int fd, char *buf, size_t size)
{
	size_t used = 0;
	ssize_t n;

	while (used < size) {
		n = read(fd, buf + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

int keys_load(const char *path, uid_t user, struct keyring *ring, char *error, size_t size)
{
	char text[KEYS_FILE_MAX];
	const char *fault = NULL;
	unsigned int line = 0;
	struct stat st;
	ssize_t n = -1;
	int fd;

	/* not to wait for the writer of a named pipe */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !fstat(fd, &st)) {
		fault = file_fault(&st, user, path);
		if (!fault)
			n = slurp(fd, text, sizeof(text));
	}
	if (fault)
		snprintf(error, size, "%s: %s", path, fault);
	else if (n < 0)
		snprintf(error, size, "%s: keys cannot be read: %s", path, strerror(errno));
	else
		fault = keys_parse(text, (size_t)n, ring, &line);
	if (line && fault)
		snprintf(error, size, "%s:%u: %s", path, line, fault);
	explicit_bzero(text, sizeof(text));
	if (fd >= 0)
		close(fd);
	if (!fault && n >= 0)
		return 0;
	keys_wipe(ring);
	return -1;
}
