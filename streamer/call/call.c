// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer call: picture and sound between two hosts, both ways. The ends
 * agree over a TLS link (link.c), direct or through a rendezvous (meet.c), on
 * ports, sources and SRTP keys (offer.c); media go from host to host, or as ICE
 * finds (path.c): then libnice has the sockets (ice.c), in place of udpsink and
 * udpsrc. One pipeline per end:
 *
 *   camera -> paqmh264enc -> rtph264pay -> paqmpacer -> rtpbin 0 -> srtpenc -> udpsink
 *   microphone -> volume -> opusenc -> rtpopuspay ---> rtpbin 1 -> srtpenc -> udpsink
 *   udpsrc -> srtpdec -> rtpbin 0 -> rtph264depay -> avdec_h264 -> screen
 *   udpsrc -> srtpdec -> rtpbin 1 -> rtpopusdepay -> opusdec -> loudspeaker
 *
 * The picture's rate follows a rate controller (control/), as in `send`; sound
 * has a fixed small rate. rtpbin plays both in step by their sender reports.
 */
#include "streamer/call/fullscreen.h"
#include "streamer/call/portal.h"
#include "streamer/call/state.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "streamer/gst/gstpaqmh264enc.h"
#include "streamer/gst/gstpaqmpacer.h"
#include "streamer/media/parts.h"
#include "streamer/options.h"
#include "streamer/rtp/wire.h"

#define BYE "bye" /* older ends say no more */

static gboolean on_echo(gpointer data)
{
	echo_tick(((struct call *)data)->echo);
	return G_SOURCE_CONTINUE;
}

static gboolean on_tick(gpointer data)
{
	struct call *c = data;

	for (int i = 0; i < CALL_MEDIA; i++)
		guard_tick(c->guard[i], RATE_TICK_MS);
	if (call_sends_video(c))
		outgoing_tick(&c->out);
	return G_SOURCE_CONTINUE;
}

/* What people do */

static void send_note(struct call *c, enum note_kind kind, const char *text)
{
	char *note = note_write(kind, text);

	link_send(c->link, note);
	g_free(note);
}

static void set_mute(struct call *c, gboolean muted)
{
	c->muted = muted;
	if (c->mute)
		g_object_set(c->mute, "mute", muted, NULL);
	send_note(c, muted ? NOTE_MUTED : NOTE_UNMUTED, NULL);
	call_record_event(&c->rec, "muted", muted ? "yes" : "no");
}

static gboolean on_mute(gpointer data)
{
	struct call *c = data;

	set_mute(c, !c->muted);
	return G_SOURCE_CONTINUE;
}

/* How often they were asked for while there was no call yet, but for pairs. */
static volatile sig_atomic_t early_mute, early_camera;

static void on_early(int number)
{
	if (number == SIGUSR1)
		early_mute ^= 1;
	else
		early_camera ^= 1;
}

static void set_dark(struct call *c, gboolean dark)
{
	if (!call_sends_video(c))
		return;
	g_atomic_int_set(&c->dark, dark);
	send_note(c, dark ? NOTE_CAMERA_OFF : NOTE_CAMERA_ON, NULL);
	call_record_event(&c->rec, "camera", dark ? "off" : "on");
}

static gboolean on_camera(gpointer data)
{
	struct call *c = data;

	set_dark(c, !c->dark);
	return G_SOURCE_CONTINUE;
}

static void open_windows(struct call *c)
{
	device_ask(c->devices[CALL_SCREEN]);
	device_ask(c->devices[CALL_SELF]);
}

static void hide_statistics(struct call *c)
{
	GstElement *overlay = part_of(c->pipeline, "overlay");
	gboolean silent;

	if (!overlay)
		return;
	g_object_get(overlay, "silent", &silent, NULL);
	g_object_set(overlay, "silent", !silent, NULL);
}

static void fill_screen(struct call *c)
{
	GstElement *elements = device_elements(c->devices[CALL_SCREEN]);

	if (elements && !fullscreen_toggle(elements, c->window))
		g_printerr("paqm-streamer: this window cannot fill the screen\n");
}

/* On the terminal, or in a window. */
static void act(char key, gpointer data)
{
	struct call *c = data;

	switch (key) {
	case 'm':
		set_mute(c, !c->muted);
		break;
	case 'c':
		set_dark(c, !c->dark);
		break;
	case 'w':
		open_windows(c);
		break;
	case 'f':
		fill_screen(c);
		break;
	case 's':
		hide_statistics(c);
		break;
	case 'q':
		call_end(c, "you hung up");
		break;
	}
}

static gboolean on_stop(gpointer data)
{
	call_end(data, "you hung up");
	return G_SOURCE_CONTINUE;
}

static gboolean on_length(gpointer data)
{
	call_end(data, "the time given with --duration is over");
	return G_SOURCE_REMOVE;
}

/*
 * Media have begun, by paths of their own, and both ends have told each other all that these need.
 * A rendezvous, or a NAT on the way to it, may end the link, but cannot end the call: the peer
 * alone can close what it has opened. If it has vanished, that shows soon.
 */
static gboolean can_do_without(struct call *c)
{
	return c->meet_text && !link_ended(c->link) && !g_atomic_int_get(&c->out.stopped);
}

void call_on_line(const char *line, gsize len, const char *why, gpointer data)
{
	struct offer_ice more[CALL_MEDIA];
	char text[OFFER_NAME];
	struct call *c = data;

	if (!line && can_do_without(c)) {
		g_printerr(
			"paqm-streamer: the rendezvous is lost (%s); the call goes on, but neither "
			"end learns that the other is muted or has hung up\n",
			why);
		call_record_event(&c->rec, "link", "lost");
		return;
	}
	if (!line) {
		call_end(c, why);
		return;
	}
	switch (note_read(line, len, text)) {
	case NOTE_MUTED:
	case NOTE_UNMUTED:
		c->peer_muted = note_read(line, len, text) == NOTE_MUTED;
		call_record_event(&c->rec, "peer-muted", c->peer_muted ? "yes" : "no");
		break;
	case NOTE_CAMERA_OFF:
	case NOTE_CAMERA_ON:
		c->peer_dark = note_read(line, len, text) == NOTE_CAMERA_OFF;
		call_record_event(&c->rec, "peer-camera", c->peer_dark ? "off" : "on");
		break;
	case NOTE_READY:
		g_atomic_int_set(&c->out.stopped, 0);
		break;
	case NOTE_BYE:
		if (strcmp(text, BYE) && !c->said)
			c->said = g_strdup_printf("the peer hung up and says: %s", text);
		call_end(c, c->said ? c->said : "the peer hung up");
		break;
	case NOTE_CANDIDATES:
		if (c->ice && note_read_candidates(line, len, more))
			ice_try_more(c->ice, more);
		break;
	case NOTE_NONE:
		break;
	}
}

static gboolean is_device(struct call *c, GstMessage *msg)
{
	for (int i = 0; i < CALL_DEVICES; i++)
		if (device_message(c->devices[i], msg)) {
			if (i == CALL_CAMERA)
				call_camera_lost(c);
			return TRUE;
		}
	return FALSE;
}

static void tell_error(struct call *c, GstMessage *msg)
{
	GError *error = NULL;
	char *debug = NULL;

	gst_message_parse_error(msg, &error, &debug);
	g_printerr("paqm-streamer: %s: %s\n", GST_OBJECT_NAME(msg->src), error->message);
	g_debug("%s", debug);
	call_record_event(&c->rec, "error", GST_OBJECT_NAME(msg->src));
	g_error_free(error);
	g_free(debug);
}

/* A bin that handles its own states thinks of its own latency; that of all is what counts. */
static gboolean is_open(struct call *c, GstMessage *msg)
{
	GstState now;

	if (GST_OBJECT_PARENT(msg->src) != GST_OBJECT(c->pipeline))
		return FALSE;
	gst_message_parse_state_changed(msg, NULL, &now, NULL);
	return now == GST_STATE_PLAYING;
}

static gboolean on_message(GstBus *bus, GstMessage *msg, gpointer data)
{
	struct call *c = data;
	GstElement *elements;

	(void)bus;
	if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_LATENCY ||
	    (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_STATE_CHANGED && is_open(c, msg))) {
		gst_bin_recalculate_latency(GST_BIN(c->pipeline));
	} else if (fullscreen_window(msg)) {
		elements = device_elements(c->devices[CALL_SCREEN]);
		if (elements && gst_object_has_as_ancestor(msg->src, GST_OBJECT(elements)))
			c->window = fullscreen_window(msg);
	} else if (gst_message_has_name(msg, CALL_KEY)) {
		const char *key = gst_structure_get_string(gst_message_get_structure(msg), "key");

		if (key && key[0] && !key[1]) /* others have names: Left, F1 */
			act(key[0], c);
	} else if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_ERROR) {
		/* of what has been taken out since */
		if (!gst_object_has_as_ancestor(msg->src, GST_OBJECT(c->pipeline)))
			return G_SOURCE_CONTINUE;
		if (is_device(c, msg))
			return G_SOURCE_CONTINUE;
		tell_error(c, msg);
		c->status = EXIT_RUN;
		c->bye = "my program failed";
		call_end(c, "an element failed");
	}
	return G_SOURCE_CONTINUE;
}

static void run(struct call *c)
{
	guint sources[11], n = 0;
	GstBus *bus = gst_element_get_bus(c->pipeline);
	GstClock *clock = gst_system_clock_obtain();
	struct sound_stats sound;

	/* Sound cards bring clocks of their own; time stamps must be the host's. */
	gst_pipeline_use_clock(GST_PIPELINE(c->pipeline), clock);
	gst_object_unref(clock);
	c->main = g_main_loop_new(NULL, FALSE);
	c->wall_offset = realtime_ns() - monotonic_ns();
	if (call_sends_video(c)) {
		GstPad *after = gst_element_get_static_pad(c->bin, "send_rtp_src_0");

		outgoing_start(&c->out, c->bin, c->session[CALL_VIDEO]);
		/* encrypted already */
		rate_hear(c->out.rate, after, wire_ip_udp(c->ipv6));
		gst_object_unref(after);
	}
	call_follow_path(c);
	sources[n++] = gst_bus_add_watch(bus, on_message, c);
	sources[n++] = g_unix_signal_add(SIGINT, on_stop, c);
	sources[n++] = g_unix_signal_add(SIGTERM, on_stop, c);
	sources[n++] = g_unix_signal_add(SIGUSR1, on_mute, c);
	sources[n++] = g_unix_signal_add(SIGUSR2, on_camera, c);
	if (c->muted || early_mute)
		set_mute(c, c->muted != early_mute); /* so that the peer knows */
	if (c->dark || early_camera)
		set_dark(c, c->dark != early_camera);
	sources[n++] = g_timeout_add(RATE_TICK_MS, on_tick, c);
	sources[n++] = g_timeout_add(INBOUND_TICK_MS, call_on_inbound, c);
	sources[n++] = g_timeout_add(1000, call_on_second, c);
	if (call_sends_video(c) && g_atomic_int_get(&c->out.waiting))
		sources[n++] = g_timeout_add(FIRST_PROBES_MS, carried_first_probes, &c->out);
	if (c->echo)
		sources[n++] = g_timeout_add(ECHO_TICK_MS, on_echo, c);
	if (isatty(STDIN_FILENO))
		keys_watch(&c->keys);
	if (c->duration > 0)
		sources[n++] = g_timeout_add((guint)(c->duration * 1000), on_length, c);
	call_record_event(&c->rec, "begin", c->theirs.name);
	if (gst_element_set_state(c->pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
		GstMessage *msg = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);

		if (msg) { /* which device */
			tell_error(c, msg);
			gst_message_unref(msg);
		}
		c->status = EXIT_RUN;
		call_end(c, "the pipeline does not start");
	} else {
		gst_element_get_state(c->pipeline, NULL, NULL, GST_SECOND);
		call_start_media(c);
		send_note(c, NOTE_READY, NULL);
		if (call_sends_video(c))
			outgoing_start_train(&c->out);
		if (!c->why)
			g_main_loop_run(c->main);
	}
	send_note(c, NOTE_BYE, c->bye ? c->bye : BYE);
	for (int i = 0; i < CALL_MEDIA; i++)
		feed_stop(c->feeds[i]);
	call_finish_media(c);
	part_stop(c->pipeline);
	while (n > 0)
		if (sources[--n] && g_main_context_find_source_by_id(NULL, sources[n]))
			g_source_remove(sources[n]);
	gst_object_unref(bus);
	outgoing_stop(&c->out);
	call_record_event(&c->rec, "end", c->why);
	sound_stats(&c->sound, &sound);
	printf("%sended: %s; sent %u pictures, showed %" G_GUINT64_FORMAT
	       ", played %" G_GUINT64_FORMAT " pieces of sound",
	       isatty(STDOUT_FILENO) ? "\n" : "", c->why, c->out.frames, c->played[CALL_VIDEO],
	       c->played[CALL_AUDIO]);
	if (sound.lost)
		printf("; %" G_GUINT64_FORMAT " of them were lost, %" G_GUINT64_FORMAT " repaired",
		       sound.lost, sound.repaired);
	printf("\n");
	for (int i = 0; i < CALL_MEDIA; i++) {
		char *refused = guard_summary(c->guard[i]);

		if (refused)
			printf("%s: %s\n", call_media_names[i], refused);
		call_record_event(&c->rec, "refused", refused ? refused : "nothing");
		g_free(refused);
	}
}

/*
 * What chooses a sound device would take OpenAL's where there is none: it reaches nothing that the
 * others do not reach, fails only when it is to give something, and complains on the terminal.
 */
static void forget_openal(void)
{
	static const char *const names[] = {"openalsink", "openalsrc"};

	for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
		GstPluginFeature *f = gst_registry_lookup_feature(gst_registry_get(), names[i]);

		if (!f)
			continue;
		gst_plugin_feature_set_rank(f, GST_RANK_NONE);
		gst_object_unref(f);
	}
}

int cmd_call(int argc, char **argv)
{
	struct call *c = g_new0(struct call, 1);
	GError *error = NULL;
	int status;

	g_set_prgname("paqm-streamer call");
	g_mutex_init(&c->sound.lock);
	for (int i = 0; i < CALL_MEDIA; i++)
		g_mutex_init(&c->capture[i].lock);
	c->fps = 30;
	c->keys = (struct keys){.fd = STDIN_FILENO, .press = act, .data = c};
	if (!call_parse(c, argc, argv, &error))
		goto out;
	signal(SIGUSR1, on_early);
	signal(SIGUSR2, on_early);
	gst_init(NULL, NULL);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	forget_openal();
	c->cancels = c->cancels && echo_possible(c->must_cancel, &error);
	if (!error && call_has_elements(&error) && call_find_devices(c, &error) &&
	    call_record_open(&c->rec, c->record_dir, &error) && call_agree(c, &error) &&
	    call_build(c, &error) && call_write_config(c, &error))
		run(c);
out:
	if (error)
		c->status = report_error(error);
	if (!call_record_close(&c->rec))
		c->status = EXIT_RUN;
	/* of a pipeline that has never played */
	for (int i = 0; i < CALL_MEDIA; i++) {
		if (c->in[i].rtp)
			gst_element_set_locked_state(c->in[i].rtp, FALSE);
		if (c->in[i].rtcp)
			gst_element_set_locked_state(c->in[i].rtcp, FALSE);
	}
	if (c->pipeline)
		part_stop(c->pipeline);
	echo_free(c->echo);
	call_tell_free(c->tell);
	carriage_free(c->carriage);
	outgoing_clear(&c->out);
	call_clear_ice(c);
	inbound_free(c->inbound);
	link_free(c->link);
	for (int i = 0; i < CALL_DEVICES; i++) {
		device_free(c->devices[i]);
		g_free(c->found[i]);
	}
	portal_free(c->portal);
	for (int i = 0; i < CALL_MEDIA; i++) {
		guard_free(c->guard[i]);
		g_mutex_clear(&c->capture[i].lock);
		reports_free(c->reports[i]);
		g_clear_object(&c->session[i]);
		g_clear_object(&c->rtp[i]);
		g_clear_object(&c->rtcp[i]);
	}
	gst_clear_object(&c->mute);
	gst_clear_object(&c->opus);
	gst_clear_object(&c->bin);
	gst_clear_object(&c->pipeline);
	if (c->main)
		g_main_loop_unref(c->main);
	g_clear_object(&c->where);
	g_clear_object(&c->from);
	g_clear_object(&c->to);
	g_clear_pointer(&c->samples, g_bytes_unref);
	y4m_close(&c->y4m);
	g_free(c->secret_path);
	g_free(c->source);
	g_free(c->audio);
	g_free(c->sink);
	g_free(c->audio_sink);
	g_free(c->record_dir);
	g_free(c->name);
	g_free(c->paqmd);
	g_free(c->controller);
	g_free(c->encoder);
	g_free(c->ecn_text);
	g_free(c->carrier);
	g_free(c->echo_text);
	g_free(c->size_text);
	g_free(c->rate_max_text);
	g_free(c->rate_min_text);
	g_mutex_clear(&c->sound.lock);
	g_free(c->said);
	status = c->status;
	g_free(c);
	return status;
}
