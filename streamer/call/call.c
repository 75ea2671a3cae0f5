// SPDX-License-Identifier: GPL-2.0
/*
 * paqm-streamer call: picture and sound between two hosts, both ways. The ends
 * agree over a TLS link (link.c) on ports, sources and SRTP keys (offer.c);
 * media go from host to host. One pipeline per end:
 *
 *   camera -> paqmh264enc -> rtph264pay -> paqmpacer -> rtpbin 0 -> srtpenc -> udpsink
 *   microphone -> volume -> opusenc -> rtpopuspay ---> rtpbin 1 -> srtpenc -> udpsink
 *   udpsrc -> srtpdec -> rtpbin 0 -> rtph264depay -> avdec_h264 -> screen
 *   udpsrc -> srtpdec -> rtpbin 1 -> rtpopusdepay -> opusdec -> loudspeaker
 *
 * The picture's rate follows a rate controller (control/), as in `send`; sound
 * has a fixed small rate. rtpbin plays both in step by their sender reports.
 */
#include "streamer/call/call.h"

#include <glib-unix.h>
#include <string.h>
#include <unistd.h>

#include "streamer/gstpaqmh264enc.h"
#include "streamer/gstpaqmpacer.h"
#include "streamer/options.h"
#include "streamer/wire.h"

#define GOP 12 /* pictures that share a base quantizer, the encoder's default */

void call_end(struct call *c, const char *why)
{
	if (!c->why)
		c->why = why;
	if (c->main)
		g_main_loop_quit(c->main);
}

/* Rate and advice */

void call_apply_rate(guint64 rate, gboolean follows, gpointer data)
{
	struct call *c = data;
	guint64 left = rate;

	c->rate_now = rate;
	if (!c->encoder)
		return;
	g_object_set(c->encoder, "packet", wire_packet(follows, (double)rate), NULL);
	if (!c->repair || repair_tick(c->repair, rate, NULL, &left))
		g_object_set(c->encoder, "rate", left, NULL);
}

static void on_advice(const struct paqm_client_advice *a, gpointer data)
{
	struct call *c = data;

	c->advised = a->rate_bps;
	if (a->rate_bps)
		train_told(c->train);
	rate_advise(c->rate, &(struct ctl_advice){.rate = (double)a->rate_bps,
						  .value = a->value,
						  .router = a->router_id,
						  .seq = a->seq});
	advice_log(c->rec.feedback, a);
}

static void register_flow(struct call *c)
{
	struct advice_flow flow = {
		.from_port = socket_port(c->rtp[CALL_VIDEO]),
		.to = g_inet_socket_address_get_address(link_peer(c->link)),
		.to_port = c->theirs.stream[CALL_VIDEO].port,
		.ssrc = c->mine.stream[CALL_VIDEO].ssrc,
		.floor_bps = c->rate_min,
		.ceil_bps = c->rate_max,
		.gop_s = GOP * c->interval,
		.answer_s = c->interval,
	};

	c->advice = advice_new(c->paqmd);
	advice_add(c->advice, &flow, on_advice, c);
}

static void on_train_over(double ms, gboolean told, gpointer data)
{
	struct call *c = data;

	(void)ms;
	g_atomic_int_set(&c->waiting, 0);
	call_record_event(&c->rec, "first-rate", told ? "told by a router" : "told by nobody");
}

/* With paqmd: let routers know of the stream before there is a picture. */
static void start_train(struct call *c)
{
	struct train_params p = {
		.socket = c->rtp[CALL_VIDEO],
		.ssrc = c->mine.stream[CALL_VIDEO].ssrc,
		.first = c->first_seq,
		.ts = c->ts_offset,
	};

	if (!advice_connected(c->advice))
		return;
	p.to = address_to_port(link_peer(c->link), c->theirs.stream[CALL_VIDEO].port);
	g_atomic_int_set(&c->waiting, 1);
	c->train = train_start(&p, on_train_over, c);
	g_object_unref(p.to);
}

static gboolean on_tick(gpointer data)
{
	struct call *c = data;
	guint64 bytes, left;

	for (int i = 0; i < CALL_MEDIA; i++)
		guard_tick(c->guard[i], RATE_TICK_MS);
	if (!c->rate)
		return G_SOURCE_CONTINUE;
	g_object_get(c->pacer, "wire-bytes", &bytes, NULL);
	rate_sent(c->rate, bytes);
	rate_tick(c->rate);
	if (c->repair && repair_tick(c->repair, c->rate_now, c->rec.control, &left))
		g_object_set(c->encoder, "rate", left, NULL);
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

static void open_windows(struct call *c)
{
	device_ask(c->devices[CALL_SCREEN]);
	device_ask(c->devices[CALL_SELF]);
}

static gboolean on_key(gint fd, GIOCondition condition, gpointer data)
{
	struct call *c = data;
	char keys[64];
	ssize_t n = read(fd, keys, sizeof(keys));

	(void)condition;
	if (n <= 0)
		return G_SOURCE_REMOVE;
	for (ssize_t i = 0; i < n; i++) {
		if (keys[i] == 'm')
			set_mute(c, !c->muted);
		else if (keys[i] == 'w')
			open_windows(c);
		else if (keys[i] == 'q')
			call_end(c, "you hung up");
	}
	return G_SOURCE_CONTINUE;
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

static void on_line(const char *line, gsize len, const char *why, gpointer data)
{
	char text[OFFER_NAME];
	struct call *c = data;

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
	case NOTE_READY:
		g_atomic_int_set(&c->held, 0);
		break;
	case NOTE_BYE:
		call_end(c, "the peer hung up");
		break;
	case NOTE_NONE:
		break;
	}
}

void call_on_device(const char *what, enum device_return returns, const char *why, gpointer data)
{
	const char *hint = "";
	struct call *c = data;

	if (!why) {
		g_printerr("paqm-streamer: %s: is there again\n", what);
	} else {
		if (returns == DEVICE_RETRIED)
			hint = " until it is there again";
		else if (returns == DEVICE_ASKED && isatty(STDIN_FILENO))
			hint = "; key w opens it again";
		g_printerr("paqm-streamer: %s: %s; the call goes on without it%s\n", what, why,
			   hint);
	}
	call_record_event(&c->rec, why ? "lost" : "back", what);
}

static gboolean is_device(struct call *c, GstMessage *msg)
{
	for (int i = 0; i < CALL_DEVICES; i++)
		if (device_message(c->devices[i], msg))
			return TRUE;
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

	(void)bus;
	if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_LATENCY ||
	    (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_STATE_CHANGED && is_open(c, msg))) {
		gst_bin_recalculate_latency(GST_BIN(c->pipeline));
	} else if (GST_MESSAGE_TYPE(msg) == GST_MESSAGE_ERROR) {
		/* of what has been taken out since */
		if (!gst_object_has_as_ancestor(msg->src, GST_OBJECT(c->pipeline)))
			return G_SOURCE_CONTINUE;
		if (is_device(c, msg))
			return G_SOURCE_CONTINUE;
		tell_error(c, msg);
		c->status = EXIT_RUN;
		call_end(c, "an element failed");
	}
	return G_SOURCE_CONTINUE;
}

static void run(struct call *c)
{
	guint sources[8], n = 0;
	GstBus *bus = gst_element_get_bus(c->pipeline);
	GstClock *clock = gst_system_clock_obtain();
	struct sound_stats sound;

	/* Sound cards bring clocks of their own; time stamps must be the host's. */
	gst_pipeline_use_clock(GST_PIPELINE(c->pipeline), clock);
	gst_object_unref(clock);
	c->main = g_main_loop_new(NULL, FALSE);
	c->held = c->theirs.tells;
	c->wall_offset = realtime_ns() - monotonic_ns();
	if (c->encoder)
		register_flow(c);
	link_watch(c->link, on_line, c);
	if (c->muted)
		set_mute(c, TRUE); /* so that the peer knows */
	sources[n++] = gst_bus_add_watch(bus, on_message, c);
	sources[n++] = g_unix_signal_add(SIGINT, on_stop, c);
	sources[n++] = g_unix_signal_add(SIGTERM, on_stop, c);
	sources[n++] = g_unix_signal_add(SIGUSR1, on_mute, c);
	sources[n++] = g_timeout_add(RATE_TICK_MS, on_tick, c);
	sources[n++] = g_timeout_add(INBOUND_TICK_MS, call_on_inbound, c);
	sources[n++] = g_timeout_add(1000, call_on_second, c);
	if (isatty(STDIN_FILENO))
		g_unix_fd_add(STDIN_FILENO, G_IO_IN, on_key, c);
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
		start_train(c);
		if (!c->why)
			g_main_loop_run(c->main);
	}
	send_note(c, NOTE_BYE, "bye");
	for (int i = 0; i < CALL_MEDIA; i++)
		feed_stop(c->feeds[i]);
	call_finish_media(c);
	gst_element_set_state(c->pipeline, GST_STATE_NULL);
	while (n > 0)
		if (sources[--n] && g_main_context_find_source_by_id(NULL, sources[n]))
			g_source_remove(sources[n]);
	gst_object_unref(bus);
	train_free(c->train);
	advice_free(c->advice);
	call_record_event(&c->rec, "end", c->why);
	sound_stats(&c->sound, &sound);
	printf("%sended: %s; sent %u pictures, showed %" G_GUINT64_FORMAT
	       ", played %" G_GUINT64_FORMAT " pieces of sound",
	       isatty(STDOUT_FILENO) ? "\n" : "", c->why, c->frames, c->played[CALL_VIDEO],
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
	c->first_pts = -1;
	c->interval = 1.0 / 24;
	if (!call_parse(c, argc, argv, &error))
		goto out;
	gst_init(NULL, NULL);
	gst_paqm_h264_enc_register(NULL);
	gst_paqm_pacer_register(NULL);
	forget_openal();
	if (call_record_open(&c->rec, c->record_dir, &error) && call_agree(c, &error) &&
	    call_build(c, &error) && call_write_config(c, &error))
		run(c);
out:
	if (error)
		c->status = report_error(error);
	if (!call_record_close(&c->rec))
		c->status = EXIT_RUN;
	if (c->rate)
		rate_free(c->rate);
	repair_free(c->repair);
	inbound_free(c->inbound);
	link_free(c->link);
	for (int i = 0; i < CALL_DEVICES; i++)
		device_free(c->devices[i]);
	for (int i = 0; i < CALL_MEDIA; i++) {
		guard_free(c->guard[i]);
		g_mutex_clear(&c->capture[i].lock);
		g_clear_object(&c->session[i]);
		g_clear_object(&c->rtp[i]);
		g_clear_object(&c->rtcp[i]);
	}
	gst_clear_object(&c->mute);
	gst_clear_object(&c->opus);
	gst_clear_object(&c->encoder);
	gst_clear_object(&c->pay);
	gst_clear_object(&c->pacer);
	gst_clear_object(&c->bin);
	gst_clear_object(&c->pipeline);
	if (c->main)
		g_main_loop_unref(c->main);
	g_clear_object(&c->where);
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
	g_free(c->rate_max_text);
	g_free(c->rate_min_text);
	g_mutex_clear(&c->sound.lock);
	status = c->status;
	g_free(c);
	return status;
}
