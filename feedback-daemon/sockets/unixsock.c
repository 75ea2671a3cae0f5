// SPDX-License-Identifier: GPL-2.0
/* Listening Unix sockets; see unixsock.h. */
#define _GNU_SOURCE /* struct ucred, accept4 */
#include "feedback-daemon/sockets/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "feedback-daemon/host/log.h"
#include "feedback-daemon/host/notify.h"

#define PEER_GROUPS 65536 /* NGROUPS_MAX: a directory service gives users hundreds */
#define PAUSE_NS 1000000000ULL

/* Who may use a socket is told by its own mode, whatever the umask of who starts us. */
static int make_dir(const char *dir)
{
	mode_t old = umask(022);
	int err = mkdir(dir, 0755);

	umask(old);
	return err;
}

static int make_dirs(const char *path, const struct sandbox_user *user)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *p;

	strcpy(dir, path);
	for (p = strchr(dir + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (make_dir(dir)) {
			if (errno != EEXIST) {
				log_line("cannot create directory %s: %s", dir, strerror(errno));
				return -1;
			}
		} else if (user->change && chown(dir, user->uid, user->gid)) {
			log_line("cannot give directory %s to uid %u: %s", dir,
				 (unsigned int)user->uid, strerror(errno));
			return -1;
		}
		*p = '/';
	}
	return 0;
}

/* Return: 0 if nothing is in the way any more. */
static int clear_stale(const struct sockaddr_un *sa, int type)
{
	struct stat st;
	int fd, err;

	if (lstat(sa->sun_path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		log_line("%s exists and is not a socket: remove it or choose another path",
			 sa->sun_path);
		return -1;
	}
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		log_line("cannot create a socket: %s", strerror(errno));
		return -1;
	}
	err = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) ? errno : 0;
	close(fd);
	if (err != ECONNREFUSED) {
		log_line("%s is in use (another paqmd?)%s%s: stop it, remove the socket or "
			 "choose another path",
			 sa->sun_path, err ? " or not ours: " : "", err ? strerror(err) : "");
		return -1;
	}
	if (!unlink(sa->sun_path))
		return 0;
	log_line("%s is left of an earlier paqmd and cannot be removed: %s", sa->sun_path,
		 strerror(errno));
	return -1;
}

int unixsock_listen(const struct daemon *d, const struct sandbox_user *user, const char *path,
		    int type, char **own)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	mode_t old;
	int fd, err;

	*own = NULL;
	fd = notify_socket(type);
	if (fd >= 0)
		return fd;
	if (strlen(path) >= sizeof(sa.sun_path) || path[0] == 0) {
		log_line("socket path '%s' is empty or longer than %zu bytes", path,
			 sizeof(sa.sun_path) - 1);
		return -1;
	}
	strcpy(sa.sun_path, path);
	if (make_dirs(path, user) || clear_stale(&sa, type))
		return -1;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		log_line("cannot create a socket: %s", strerror(errno));
		return -1;
	}
	old = umask(0177); /* no access before the group is set */
	err = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	umask(old);
	if (err) {
		log_line("cannot bind %s: %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	if (d->has_group && (chown(path, (uid_t)-1, d->group) || chmod(path, 0660))) {
		log_line("cannot give %s to group %u: %s", path, (unsigned int)d->group,
			 strerror(errno));
		goto fail;
	}
	if (listen(fd, 16)) {
		log_line("cannot listen on %s: %s", path, strerror(errno));
		goto fail;
	}
	*own = strdup(path);
	return fd;
fail:
	close(fd);
	unlink(path);
	return -1;
}

void unixsock_close(int fd, char *own)
{
	/* In this order: once it is closed, another paqmd may take the path. */
	if (own)
		unlink(own);
	free(own);
	close(fd);
}

static bool is_owner(const struct daemon *d, uid_t uid)
{
	return uid == 0 || uid == d->owner;
}

static bool peer_allowed(const struct daemon *d, int fd, const struct ucred *peer)
{
	static gid_t groups[PEER_GROUPS];
	socklen_t len = sizeof(groups);
	size_t i;

	if (is_owner(d, peer->uid))
		return true;
	if (!d->has_group)
		return false;
	if (peer->gid == d->group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == d->group)
			return true;
	return false;
}

#define FILES_HINT "raise 'ulimit -n' or LimitNOFILE= of the unit"

/* Out of files: refuse the client at once. Return: whether that worked. */
static bool turn_away(struct daemon *d, int fd)
{
	int c;

	close(d->spare);
	c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (c >= 0)
		close(c);
	d->spare = fcntl(d->epfd, F_DUPFD_CLOEXEC, 0);
	if (c >= 0)
		log_limited(LOG_CLASS_CLIENT, "refused a client: out of files; " FILES_HINT);
	return c >= 0;
}

static void listen_for(struct daemon *d, uint32_t events)
{
	size_t i;

	for (i = 0; i < sizeof(d->listener) / sizeof(d->listener[0]); i++)
		loop_watch(d, d->listener[i], events);
}

/* What lacks will lack for the next one, too, and who waits in the queue would wake us again
 * and again.
 */
static void pause_listening(struct daemon *d, int err)
{
	listen_for(d, 0);
	d->listen_ns = clock_ns(DAEMON_CLOCK) + PAUSE_NS;
	if (!d->starved)
		log_limited(LOG_CLASS_CLIENT,
			    "cannot accept clients: %s; trying again every %llu s; %s",
			    strerror(err), PAUSE_NS / 1000000000ULL,
			    err == EMFILE   ? FILES_HINT
			    : err == ENFILE ? "raise fs.file-max, see sysctl(8)"
					    : "this machine is short of memory");
	d->starved = true;
}

uint64_t unixsock_resume(struct daemon *d, uint64_t now_ns)
{
	if (now_ns < d->listen_ns)
		return d->listen_ns;
	if (d->spare < 0)
		d->spare = fcntl(d->epfd, F_DUPFD_CLOEXEC, 0);
	listen_for(d, EPOLLIN);
	d->listen_ns = UINT64_MAX;
	return UINT64_MAX;
}

int unixsock_accept(struct daemon *d, int fd, struct unixsock_peer *who)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (c < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
		int err = errno;

		d->accept_failed++;
		if (err != EMFILE || !turn_away(d, fd))
			pause_listening(d, err);
	}
	if (c < 0)
		return -1;
	if (d->starved)
		log_info("clients are accepted again");
	d->starved = false;
	if (getsockopt(c, SOL_SOCKET, SO_PEERCRED, &peer, &len) || !peer_allowed(d, c, &peer)) {
		d->peers_refused++;
		log_limited(LOG_CLASS_CLIENT,
			    "refused a client of uid %u: not root, not the user who started "
			    "paqmd%s",
			    (unsigned int)peer.uid, d->has_group ? ", not in the group" : "");
		close(c);
		return -1;
	}
	*who = (struct unixsock_peer){
		.pid = peer.pid, .uid = peer.uid, .owner = is_owner(d, peer.uid)};
	return c;
}

bool unixsock_room(const struct unixsock_peer *peer, uint32_t own, uint32_t used, uint32_t all,
		   struct clients_full *full)
{
	if (used == all) {
		full->all++;
		log_limited(LOG_CLASS_CLIENT, "client pid %d refused: %u are connected already",
			    (int)peer->pid, used);
		return false;
	}
	if (share_is_whole(peer->uid) || share_has(own, 1, used, all))
		return true;
	full->user++;
	log_limited(LOG_CLASS_CLIENT,
		    "client pid %d refused: uid %u has %u clients already, and %u are left for "
		    "others",
		    (int)peer->pid, (unsigned int)peer->uid, own, all - used);
	return false;
}
