// SPDX-License-Identifier: GPL-2.0
/* The service manager; see notify.h. The protocol is a few lines, so no library. */
#include "feedback-daemon/host/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"

#define FIRST_FD 3
#define FDS_MAX 16

static int manager = -1;

void notify_open(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;

	if (!n || n >= sizeof(sa.sun_path))
		return;
	memcpy(sa.sun_path, path, n);
	if (path[0] == '@')
		sa.sun_path[0] = 0; /* abstract */
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager >= 0 && !connect(manager, (struct sockaddr *)&sa,
				     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)))
		return;
	log_line("NOTIFY_SOCKET %s: %s", path, strerror(errno));
	if (manager >= 0)
		close(manager);
	manager = -1;
}

void notify(const char *state)
{
	if (manager >= 0 && send(manager, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_limited(LOG_CLASS_CLIENT, "the service manager cannot be reached: %s",
			    strerror(errno));
}

/* A variable that is meant for this process and no other. */
static unsigned long long own_number(const char *name, const char *pid_name)
{
	const char *v = getenv(name), *pid = getenv(pid_name);

	if (!v || (pid && strtoull(pid, NULL, 10) != (unsigned long long)getpid()))
		return 0;
	return strtoull(v, NULL, 10);
}

uint64_t notify_watchdog_ns(void)
{
	return own_number("WATCHDOG_USEC", "WATCHDOG_PID") * 1000 / 2;
}

int notify_socket(int type)
{
	unsigned long long n = own_number("LISTEN_FDS", "LISTEN_PID");
	int fd, is, listens;

	for (fd = FIRST_FD; fd < FIRST_FD + FDS_MAX && (unsigned long long)(fd - FIRST_FD) < n;
	     fd++) {
		socklen_t len = sizeof(is), size = sizeof(listens);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &is, &len) ||
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || is != type ||
		    !listens)
			continue;
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
			return -1;
		return fd;
	}
	return -1;
}
