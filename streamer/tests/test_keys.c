// SPDX-License-Identifier: GPL-2.0
/* Keys on a terminal whose foreground is another job's, then ours. */
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/tests/check.h"
#include "streamer/call/keys.h"

#define PATIENCE_S 60 /* a machine may be busy */

static void on_press(char key, gpointer out)
{
	if (write(*(int *)out, &key, 1) != 1)
		_exit(1);
}

static gboolean on_turn(gpointer out)
{
	on_press('.', out);
	return G_SOURCE_CONTINUE;
}

/* The job: says by @out what is pressed, and by dots that it runs. */
static void job(int out)
{
	struct keys k = {.fd = STDIN_FILENO, .press = on_press, .data = &out};

	keys_watch(&k);
	g_timeout_add(20, on_turn, &out);
	g_main_loop_run(g_main_loop_new(NULL, FALSE));
}

static int shell_out;

static void on_job(int number)
{
	(void)number;
	on_press('S', &shell_out);
}

/* Leads the session, as a shell does: the job begins in the background. */
static void shell(const char *terminal, int in, int out)
{
	pid_t pid;
	char c;

	setsid();
	dup2(open(terminal, O_RDWR), STDIN_FILENO); /* the session's, by that */
	signal(SIGTTOU, SIG_IGN);
	signal(SIGHUP, SIG_DFL); /* the tests may run under nohup */
	shell_out = out;
	signal(SIGCHLD, on_job); /* it has stopped, or ended */
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		job(out);
	}
	setpgid(pid, pid);
	if (read(in, &c, 1) == 1)
		tcsetpgrp(STDIN_FILENO, pid);
	for (;;)
		pause();
}

/* Reads until @n of @what have come. Return: whether they have, and none of @never. */
static bool hears(int from, char what, int n, const char *never)
{
	char c;

	while (n && read(from, &c, 1) == 1 && !strchr(never, c))
		n -= c == what;
	return !n;
}

TEST(foreground)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), go[2], said[2];
	pid_t pid;

	CHECK(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
	CHECK(!pipe(go) && !pipe(said));
	pid = fork();
	if (!pid) {
		alarm(PATIENCE_S);
		close(said[0]);
		shell(ptsname(terminal), go[0], said[1]);
	}
	close(said[1]);
	CHECK(hears(said[0], '.', 1, "S"));
	CHECK(write(terminal, "m\n", 2) == 2);
	/* a read would have stopped it; what is typed is not its own */
	CHECK(hears(said[0], '.', 5, "Sm"));
	CHECK(write(go[1], "", 1) == 1);
	/* then the line is there that nobody has read */
	CHECK(hears(said[0], 'm', 1, "Sq"));
	CHECK(write(terminal, "q\n", 2) == 2);
	CHECK(hears(said[0], 'q', 1, "S"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(terminal); /* hangs up: the job ends */
	while (hears(said[0], '.', 1, ""))
		;
}

int main(void)
{
	alarm(PATIENCE_S);
	return check_run();
}
