// SPDX-License-Identifier: GPL-2.0
/* The recorder of a call: one directory with everything a field trial wants to know later. */
#include <errno.h>
#include <glib/gstdio.h>

#include "streamer/call/state.h"
#include "streamer/encoder/encoded.h"
#include "streamer/options.h"
#include "streamer/outgoing/rate.h"

/**
 * call_record_open() - begin a recording
 * @dir: must not be there yet, or be empty; NULL: no recording
 */
gboolean call_record_open(struct call_record *r, const char *dir, GError **error)
{
	const struct {
		FILE **file;
		const char *name, *header;
	} files[] = {
		{&r->frames, "frames.csv", ENCODED_HEADER},
		{&r->gop, "gop.csv", ENCODED_GROUP_HEADER},
		{&r->feedback, "feedback.csv", ADVICE_HEADER},
		{&r->control, "control.csv", RATE_HEADER},
		{&r->rx, "rx.csv", CALL_RX_HEADER},
		{&r->play[CALL_VIDEO], "video.csv", CALL_PLAY_HEADER},
		{&r->play[CALL_AUDIO], "audio.csv", CALL_PLAY_HEADER},
		{&r->rtcp, "rtcp.csv", CALL_RTCP_HEADER},
		{&r->inbound, "inbound.csv", INBOUND_HEADER},
		{&r->events, "events.csv", CALL_EVENTS_HEADER},
	};

	*r = (struct call_record){0};
	if (!dir)
		return TRUE;
	if (g_file_test(dir, G_FILE_TEST_EXISTS) && g_rmdir(dir) < 0) {
		g_set_error(
			error, USAGE_ERROR, 0,
			"%s exists and is not an empty directory: each recording needs one of its "
			"own",
			dir);
		return FALSE;
	}
	r->dir = g_strdup(dir);
	for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
		*files[i].file = open_log(dir, files[i].name, files[i].header, error);
		if (!*files[i].file)
			return FALSE;
	}
	return TRUE;
}

void call_record_event(struct call_record *r, const char *event, const char *detail)
{
	char **parts, *quoted;

	if (!r->events)
		return;
	parts = g_strsplit(detail, "\"", -1);
	quoted = g_strjoinv("\"\"", parts);
	fprintf(r->events, "%" G_GINT64_FORMAT ",%s,\"%s\"\n", realtime_ns(), event, quoted);
	fflush(r->events); /* they are few, and of a program that is killed none would be there */
	g_free(quoted);
	g_strfreev(parts);
}

/* False: something of it did not reach the disk. */
gboolean call_record_close(struct call_record *r)
{
	gboolean ok = close_log(r->frames, "frames.csv");

	ok &= close_log(r->gop, "gop.csv");
	ok &= close_log(r->feedback, "feedback.csv");
	ok &= close_log(r->control, "control.csv");
	ok &= close_log(r->rx, "rx.csv");
	ok &= close_log(r->play[CALL_VIDEO], "video.csv");
	ok &= close_log(r->play[CALL_AUDIO], "audio.csv");
	ok &= close_log(r->rtcp, "rtcp.csv");
	ok &= close_log(r->inbound, "inbound.csv");
	ok &= close_log(r->events, "events.csv");
	g_free(r->dir);
	*r = (struct call_record){0};
	return ok;
}
