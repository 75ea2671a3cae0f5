// SPDX-License-Identifier: GPL-2.0
/* paqm-streamer: sends or receives live media that follows its network. */
#include <fcntl.h>
#include <gst/gst.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "streamer/options.h"
#include "streamer/trace/trace.h"

/* Its argv[0] is its own name. */
struct command {
	const char *name, *help;
	int (*run)(int argc, char **argv);
};

static void list(FILE *f, const struct command *table)
{
	for (; table->name; table++)
		fprintf(f, "  %-8s %s\n", table->name, table->help);
}

static const struct command *find(const struct command *table, const char *name)
{
	while (table->name && strcmp(table->name, name) != 0)
		table++;
	return table->name ? table : NULL;
}

static gboolean is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static const struct command trace_commands[] = {
	{"send", "send the ladder that --trace names", cmd_trace_send},
	{"recv", "receive and log such flows", cmd_trace_recv},
	{0},
};

static int trace_usage(FILE *f)
{
	fprintf(f, "Usage: paqm-streamer trace COMMAND [OPTION...]\n\n");
	list(f, trace_commands);
	return f == stderr ? EXIT_USAGE : 0;
}

static int cmd_trace(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2)
		return trace_usage(stderr);
	if (is_help(argv[1]))
		return trace_usage(stdout);
	c = find(trace_commands, argv[1]);
	if (c)
		return c->run(argc - 1, argv + 1);
	fprintf(stderr, "paqm-streamer: no command 'trace %s'\n", argv[1]);
	return trace_usage(stderr);
}

static const struct command commands[] = {
	{"send", "encode a file or a test picture and send it", cmd_send},
	{"recv", "receive, decode and record a stream", cmd_recv},
	{"call", "picture and sound both ways, from host to host", cmd_call},
	{"devices", "list the cameras, microphones and loudspeakers for calls", cmd_devices},
	{"trace", "send or receive ready-made quality ladders, many flows at little cost",
	 cmd_trace},
	{0},
};

static int usage(FILE *f)
{
	fprintf(f, "Usage: paqm-streamer COMMAND [OPTION...]\n"
		   "\n"
		   "Live H.264 over RTP that obeys the rates P-AQM routers announce.\n"
		   "\n");
	list(f, commands);
	fprintf(f,
		"\n"
		"`send --trace DIR` and `recv --trace` are the same as `trace send --trace DIR`\n"
		"and `trace recv`; paqm-trace makes ladders and judges what arrived.\n"
		"\n"
		"paqm-streamer COMMAND --help shows the options of a command, paqm-streamer\n"
		"--version the version.\n");
	return f == stderr ? EXIT_USAGE : 0;
}

static gboolean is_trace(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], "--trace") || g_str_has_prefix(argv[i], "--trace=") ||
		    !strcmp(argv[i], "--levels") || g_str_has_prefix(argv[i], "--levels="))
			return TRUE;
	return FALSE;
}

/* A terminal that is closed ends any command as the service manager does. */
static void on_hangup(int number)
{
	(void)number;
	raise(SIGTERM);
}

/* What is closed would be the number of the first file or socket, and messages would go there. */
static void hold_standard(void)
{
	int fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDWR);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct sigaction hangup = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};
	const struct command *c;
	struct sigaction now;

	hold_standard();
	/* names as the terminal writes them; numbers in logs and options stay those of C */
	setlocale(LC_CTYPE, "");
	if (!sigaction(SIGHUP, NULL, &now) && now.sa_handler != SIG_IGN) /* nohup(1) ignores it */
		sigaction(SIGHUP, &hangup, NULL);
	if (argc < 2)
		return usage(stderr);
	if (is_help(argv[1]))
		return usage(stdout);
	if (!strcmp(argv[1], "--version")) {
		printf("paqm-streamer %s\n", PAQM_VERSION);
		return 0;
	}
	if (is_trace(argc, argv) && find(trace_commands, argv[1]))
		return cmd_trace(argc, argv);
	c = find(commands, argv[1]);
	if (c)
		return c->run(argc - 1, argv + 1);
	fprintf(stderr, "paqm-streamer: no command '%s'\n", argv[1]);
	return usage(stderr);
}
