// SPDX-License-Identifier: GPL-2.0
/* paqm-streamer: sends or receives live media that follows its network. */
#include <gst/gst.h>
#include <string.h>

#include "streamer/options.h"
#include "streamer/trace/trace.h"

static int usage(FILE *f)
{
	fprintf(f, "Usage: paqm-streamer COMMAND [OPTION...]\n"
		   "\n"
		   "Live H.264 over RTP that obeys the rates P-AQM routers announce.\n"
		   "\n"
		   "  send   encode a file or a test picture and send it\n"
		   "  recv   receive, decode and record a stream\n"
		   "  call   picture and sound both ways, from host to host\n"
		   "\n"
		   "With --trace they send and log ready-made quality ladders instead, many flows\n"
		   "at little cost; paqm-trace makes ladders and judges what arrived.\n"
		   "\n"
		   "paqm-streamer COMMAND --help shows the options of a command.\n");
	return f == stderr ? EXIT_USAGE : 0;
}

static gboolean is_trace(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], "--trace") || g_str_has_prefix(argv[i], "--trace="))
			return TRUE;
	return FALSE;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return usage(stdout);
	if (!strcmp(argv[1], "--version")) {
		printf("paqm-streamer %s\n", PAQM_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "send"))
		return is_trace(argc, argv) ? cmd_trace_send(argc - 1, argv + 1)
					    : cmd_send(argc - 1, argv + 1);
	if (!strcmp(argv[1], "recv"))
		return is_trace(argc, argv) ? cmd_trace_recv(argc - 1, argv + 1)
					    : cmd_recv(argc - 1, argv + 1);
	if (!strcmp(argv[1], "call"))
		return cmd_call(argc - 1, argv + 1);
	fprintf(stderr, "paqm-streamer: no command '%s'\n", argv[1]);
	return usage(stderr);
}
