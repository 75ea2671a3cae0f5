// SPDX-License-Identifier: GPL-2.0
/*
 * What goes on in a call, written down and told: groups of pictures that are sent, packets that
 * come, what is played and when, the peer's reports, a line of statistics for people.
 */

#include "streamer/call/state.h"
#include "streamer/encoder/encoded.h"
#include "streamer/options.h"
#include "streamer/media/parts.h"
#include "streamer/rtp/wire.h"
#include <gst/video/video.h>
#include <unistd.h>

#define SILENCE_S 10 /* without a packet for this long the peer has vanished */
#define BLANK_S 10   /* without a picture of the peer: it is said */

/* What the peer does not take yet is not coded. */
GstPadProbeReturn call_on_raw_sound(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct call *c = data;

	(void)pad;
	(void)info;
	return g_atomic_int_get(&c->out.stopped) ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

void call_on_group(GstElement *enc, const GstStructure *g, gpointer data)
{
	(void)enc;
	encoded_group_log(((struct call *)data)->rec.gop, g, realtime_ns());
}

/* Logs of what is received */

/* A packet from the wire, still encrypted: what strangers send is not ours. */
GstPadProbeReturn call_on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstBuffer *buf = GST_PAD_PROBE_INFO_BUFFER(info);
	struct call *c = data;
	guint8 head[12];

	(void)pad;
	if (gst_buffer_extract(buf, 0, head, sizeof(head)) == sizeof(head) &&
	    GST_READ_UINT32_BE(head + 8) == c->theirs.stream[CALL_VIDEO].ssrc &&
	    (head[1] & 0x7f) != FEC_PT) /* numbered otherwise */
		fprintf(c->rec.rx, "%" G_GINT64_FORMAT ",%u,%u,%d,%" G_GSIZE_FORMAT "\n",
			realtime_ns(), GST_READ_UINT16_BE(head + 2), GST_READ_UINT32_BE(head + 4),
			head[1] >> 7, gst_buffer_get_size(buf) + wire_ip_udp(c->ipv6));
	return GST_PAD_PROBE_OK;
}

/* A packet that is truly the peer's, in the order of arrival. */
GstPadProbeReturn call_on_proven(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	struct call *c = data;
	guint8 head[8];

	(void)pad;
	if (gst_buffer_extract(GST_PAD_PROBE_INFO_BUFFER(info), 0, head, sizeof(head)) ==
	    sizeof(head))
		inbound_packet(c->inbound, GST_READ_UINT32_BE(head + 4));
	return GST_PAD_PROBE_OK;
}

/* When a buffer is played: at its time plus the latency, or at once if that is past. */
static void on_play(struct call *c, GstPad *pad, GstBuffer *buf, enum call_media media)
{
	gint64 now = monotonic_ns(), play;
	const GstSegment *segment;
	GstEvent *event;
	guint64 running;

	event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
	if (!event)
		return;
	gst_event_parse_segment(event, &segment);
	running = gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buf));
	gst_event_unref(event);
	play = (gint64)(gst_element_get_base_time(c->pipeline) + running +
			g_atomic_int_get(&c->play_ms) * GST_MSECOND);
	play = MAX(play, now);
	if (c->rec.play[media])
		fprintf(c->rec.play[media],
			"%" G_GUINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
			",%" G_GINT64_FORMAT "\n",
			c->played[media], capture_of(buf), now + c->wall_offset,
			play + c->wall_offset);
	c->played[media]++;
}

GstPadProbeReturn call_on_video_played(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	on_play(data, pad, GST_PAD_PROBE_INFO_BUFFER(info), CALL_VIDEO);
	return GST_PAD_PROBE_OK;
}

GstPadProbeReturn call_on_audio_played(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	on_play(data, pad, GST_PAD_PROBE_INFO_BUFFER(info), CALL_AUDIO);
	return GST_PAD_PROBE_OK;
}

struct told {
	struct call *call;
	enum call_media media;
};

/* Copies of sound cost its quality: they are as many as losses ask for, and none without. */
static void follow_losses(struct call *c, const struct report_block *b)
{
	guint percent;

	losses_report(&c->sound_losses, b->highest, b->lost);
	percent = losses_percent(&c->sound_losses);
	if (percent == c->sound_told || !c->opus)
		return;
	c->sound_told = percent;
	g_object_set(c->opus, "packet-loss-percentage", (gint)percent, NULL);
	if (c->rec.control)
		fprintf(c->rec.control, "%" G_GINT64_FORMAT ",sound,loss,%u\n", realtime_ns(),
			percent);
}

/* The peer's report about what we send. */
static void on_report(const struct report_block *b, gpointer data)
{
	struct call *c = ((struct told *)data)->call;
	enum call_media media = ((struct told *)data)->media;

	if (media == CALL_VIDEO) {
		c->fraction_lost = b->fraction_lost;
		c->rtt_ms = b->rtt * 1000;
	} else {
		follow_losses(c, b);
	}
	if (c->rec.rtcp)
		fprintf(c->rec.rtcp, "%" G_GINT64_FORMAT ",%s,%.4f,%d,%.3f,%.3f\n", realtime_ns(),
			call_media_names[media], b->fraction_lost, b->lost,
			b->jitter * 1000.0 / (media == CALL_VIDEO ? 90000 : 48000), b->rtt * 1000);
}

/*
 * How old the peer's picture is: half of the round trip, and what it waits here. That its clock
 * shows the same time as ours is not known, so when it was captured says nothing.
 */
static double picture_age(struct call *c)
{
	return c->rtt_ms / 2 + g_atomic_int_get(&c->play_ms);
}

/* What the two ends have switched off. */
static char *switched_off(const struct call *c)
{
	return g_strconcat(c->muted ? ", muted" : "", c->dark ? ", camera off" : "",
			   c->peer_muted ? ", peer muted" : "",
			   c->peer_dark ? ", peer's camera off" : "",
			   c->quiet_for[CALL_MICROPHONE] >= QUIET_S ? ", microphone silent" : "",
			   c->quiet_for[CALL_CAMERA] >= QUIET_S ? ", camera gives nothing" : "",
			   c->blank_for >= BLANK_S ? ", no picture of the peer arrives" : "", NULL);
}

/* What a person wants to see. */
static char *statistics(struct call *c)
{
	char *off = switched_off(c), *text;

	if (c->unheard.stopped)
		text = g_strdup_printf("sound only, none of our pictures arrives; loss %.1f %%, "
				       "round trip %.0f ms%s",
				       c->fraction_lost * 100, c->rtt_ms, off);
	else if (c->scarce.paused)
		text = g_strdup_printf("sound only, routers grant the picture %.0f kbit/s of the "
				       "%.0f that it needs; loss %.1f %%, round trip %.0f ms%s",
				       c->out.told.rate / 1e3, (double)c->out.rate_min / 1e3,
				       c->fraction_lost * 100, c->rtt_ms, off);
	else
		text = g_strdup_printf(
			"%.0f kbit/s%s, quantizer %u, loss %.1f %%, round trip %.0f ms, "
			"their picture is about %.0f ms old%s",
			c->out.granted / 1e3,
			c->out.told.rate > 0 ? " (a router's advice)" : " (own judgement)",
			c->out.qp, c->fraction_lost * 100, c->rtt_ms, picture_age(c), off);
	g_free(off);
	return text;
}

/* Who only watches sends reports. */
static gboolean is_silent(const struct call *c)
{
	gint64 heard = GUARD_BEGIN;

	for (int i = 0; i < CALL_MEDIA; i++)
		heard = MAX(heard, guard_heard(c->guard[i]));
	return guard_now(c->guard[0]) - heard > SILENCE_S * G_USEC_PER_SEC;
}

/* Of all raw pictures one in so many is coded; 0: all. */
static void set_sparse(struct call *c)
{
	double still = c->unheard.stopped ? UNHEARD_STILL_S : SCARCE_STILL_S;
	gboolean sparse = c->unheard.stopped || c->scarce.paused;

	g_atomic_int_set(&c->out.sparse, sparse ? MAX(1, (gint)(still / c->out.interval)) : 0);
}

static void look_at_advice(struct call *c)
{
	if (!scarce_second(&c->scarce, c->out.told.rate, (double)c->out.rate_min))
		return;
	set_sparse(c);
	if (c->scarce.paused)
		g_printerr("paqm-streamer: routers grant the picture %.0f kbit/s, and it needs "
			   "%.0f; sound goes on, the picture comes back when there is more\n",
			   c->out.told.rate / 1e3, (double)c->out.rate_min / 1e3);
	else
		g_printerr("paqm-streamer: the picture is back\n");
	call_record_event(&c->rec, "picture", c->scarce.paused ? "paused" : "back");
}

/* What does not arrive must not load the path for ever. */
static void look_at_reports(struct call *c)
{
	gint64 report_at = guard_reported(c->guard[CALL_VIDEO]);
	gboolean reported = report_at != c->report_at, sent = c->out.frames != c->pictures_out;

	c->report_at = report_at;
	c->pictures_out = c->out.frames;
	if (!unheard_second(&c->unheard, sent, reported))
		return;
	set_sparse(c);
	if (c->unheard.stopped)
		g_printerr("paqm-streamer: the peer has reported on no picture for %d s; sound "
			   "goes on, and one picture every %d s until one arrives; does a firewall "
			   "block the picture's port?\n",
			   BREAKER_S, UNHEARD_STILL_S);
	else
		g_printerr("paqm-streamer: the picture arrives again\n");
	call_record_event(&c->rec, "picture", c->unheard.stopped ? "unheard" : "heard");
}

/* The peer may not know that its pictures do not come. Where they cannot go is known already. */
static void look_at_picture(struct call *c)
{
	if (c->played[CALL_VIDEO] != c->pictures_played ||
	    !device_elements(c->devices[CALL_SCREEN]))
		c->blank_for = 0;
	else if (++c->blank_for == BLANK_S)
		g_printerr("paqm-streamer: no picture of the peer has arrived for %d s\n", BLANK_S);
	c->pictures_played = c->played[CALL_VIDEO];
}

gboolean call_on_second(gpointer data)
{
	struct call *c = data;
	GstElement *overlay;
	char *text;

	for (int i = 0; i < CALL_MEDIA; i++)
		if (c->reports[i])
			reports_poll(c->reports[i], on_report, &(struct told){c, i});
	if (call_sends_video(c)) {
		look_at_advice(c);
		look_at_reports(c);
	}
	if (c->theirs.stream[CALL_VIDEO].sends)
		look_at_picture(c);
	call_watch_pipes(c);
	call_watch_quiet(c);
	if (is_silent(c)) {
		c->bye = "no packet of yours has arrived for 10 s";
		call_end(c, "no packet of the peer for 10 s");
	}
	text = statistics(c);
	overlay = part_of(c->pipeline, "overlay");
	if (overlay)
		g_object_set(overlay, "text", text, NULL);
	else if (isatty(STDOUT_FILENO))
		printf("\r\033[K%s", text);
	fflush(stdout);
	g_free(text);
	return G_SOURCE_CONTINUE;
}
