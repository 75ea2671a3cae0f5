// SPDX-License-Identifier: GPL-2.0
/* Keys on the terminal; see keys.h. */
#include "streamer/call/keys.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <unistd.h>

#define AWAY_MS 500 /* until a job in the background looks again whether it still is there */

static gboolean on_typed(gint fd, GIOCondition condition, gpointer data);

static gboolean on_away(gpointer data)
{
	struct keys *k = data;

	g_unix_fd_add(k->fd, G_IO_IN, on_typed, k);
	return G_SOURCE_REMOVE;
}

static gboolean on_typed(gint fd, GIOCondition condition, gpointer data)
{
	struct keys *k = data;
	char typed[64];
	ssize_t n = read(fd, typed, sizeof(typed));

	(void)condition;
	/* It stays readable until the other job has read it. */
	if (n < 0 && errno == EIO)
		g_timeout_add(AWAY_MS, on_away, k);
	if (n <= 0)
		return G_SOURCE_REMOVE;
	for (ssize_t i = 0; i < n; i++)
		k->press(typed[i], k->data);
	return G_SOURCE_CONTINUE;
}

void keys_watch(struct keys *k)
{
	/* A read in the background fails instead. */
	signal(SIGTTIN, SIG_IGN);
	g_unix_fd_add(k->fd, G_IO_IN, on_typed, k);
}
