// SPDX-License-Identifier: GPL-2.0
/* Both ends of what is seen and heard in a call: devices, files, test pictures. */
#include <string.h>
#include <unistd.h>

#include <gst/video/video.h>

#include "streamer/call/choose.h"
#include "streamer/call/portal.h"
#include "streamer/call/state.h"
#include "streamer/media/parts.h"

static gboolean is_none(const char *text)
{
	return !strcmp(text, "none");
}

static void ask(GString *caps, int width, int height, const char *rate)
{
	g_string_append_printf(caps,
			       "video/x-raw,width=%1$d,height=%2$d%3$s; "
			       "image/jpeg,width=%1$d,height=%2$d%3$s; ",
			       width, height, rate);
}

/*
 * What to ask of a camera, the best first: left alone it would give its largest picture, at few a
 * second. Large ones it may give fast enough as JPEG only.
 */
static char *camera_caps(const struct call *c)
{
	char *fps = g_strdup_printf(",framerate=%d/1", c->fps);
	const char *const rates[] = {fps, ",framerate=30/1", ""};
	GString *caps = g_string_new(NULL);

	for (gsize i = 0; i < G_N_ELEMENTS(rates); i++)
		ask(caps, c->width, c->height, rates[i]);
	for (gsize i = 0; i < G_N_ELEMENTS(rates); i++)
		ask(caps, 640, 480, rates[i]);
	g_free(fps);
	g_string_append(caps, "image/jpeg,width=1280,height=720; video/x-raw,width=320,height=240; "
			      "video/x-raw; image/jpeg; video/x-h264");
	return g_string_free(caps, FALSE);
}

static char *y4m_camera(struct call *c)
{
	char *caps, *elements;
	GstCaps *pictures;

	c->out.interval = (double)c->y4m.fps_d / c->y4m.fps_n;
	c->out.clip_frames = c->y4m.frames;
	pictures = y4m_caps(&c->y4m);
	caps = gst_caps_to_string(pictures);
	elements = g_strdup_printf("appsrc name=camera is-live=true format=time max-buffers=4 "
				   "leaky-type=downstream caps=\"%s\"",
				   caps);
	g_free(caps);
	gst_caps_unref(pictures);
	return elements;
}

/* X shows programs a black screen there. */
static gboolean use_portal(struct call *c, GError **error)
{
	if (strcmp(c->source, "screen") || !call_env("WAYLAND_DISPLAY"))
		return TRUE;
	c->portal = portal_open(error);
	if (c->portal)
		c->found[CALL_CAMERA] = portal_elements(c->portal);
	return c->portal != NULL;
}

gboolean call_find_devices(struct call *c, GError **error)
{
	const struct {
		enum call_device device;
		enum choose_kind kind;
		const char *option, *word;
	} all[] = {
		{CALL_CAMERA, CHOOSE_CAMERA, c->source, "camera"},
		{CALL_MICROPHONE, CHOOSE_MICROPHONE, c->audio, "mic"},
		{CALL_SPEAKER, CHOOSE_SPEAKER, c->audio_sink, "auto"},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
		const char *name = choose_name(all[i].option, all[i].word);

		if (!name)
			continue;
		c->found[all[i].device] = choose_elements(all[i].kind, name, error);
		if (!c->found[all[i].device])
			return FALSE;
	}
	return use_portal(c, error);
}

/* The one of that name, or the usual one. */
static const char *found(const struct call *c, enum call_device device, const char *usual)
{
	return c->found[device] ? c->found[device] : usual;
}

static char *device_camera(struct call *c)
{
	gboolean path = c->source[0] == '/';
	char *caps = camera_caps(c), *text;

	text = g_strdup_printf("%s%s%s ! capsfilter caps=\"%s\" ! decodebin",
			       found(c, CALL_CAMERA, "v4l2src"), path ? " device=" : "",
			       path ? c->source : "", caps);
	g_free(caps);
	return text;
}

/* What is decoded of a file, by the device that it stands for. */
static const char *const files[CALL_DEVICES] = {
	[CALL_CAMERA] = "camera-file", [CALL_MICROPHONE] = "microphone-file"};

/* Decoded at its pace. What fails about it is told, and tried again, as with a device. */
static char *file(enum call_device kind, const char *caps)
{
	return g_strdup_printf("uridecodebin name=%s caps=%s ! identity name=pacer sync=true",
			       files[kind], caps);
}

/* What a file of this device is called. */
static const char *path_of(const struct call *c, enum call_device kind)
{
	return kind == CALL_CAMERA ? c->source : c->audio;
}

#define PIPE "paqm-pipe" /* of its elements: the descriptor */
/* A program that writes as it goes is not so late, one that has stood still is. */
#define PIPE_LATE ((gint64)(500 * GST_MSECOND))
/* What writes sound; its path may have signs that the parser of elements takes for its own. */
#define SOUND_FILE "sound-file"

static void close_pipe(gpointer fd)
{
	close(GPOINTER_TO_INT(fd));
}

struct piped {
	struct device **device;
	gboolean any;
};

/* How late what comes out of a pipe is at its pacer; negative: it will wait there. */
static gint64 lateness(GstPad *pad, GstElement *pacer, GstBuffer *buf)
{
	GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
	GstClockTime now = gst_element_get_current_running_time(pacer), due;
	const GstSegment *segment;

	if (!event)
		return 0;
	gst_event_parse_segment(event, &segment);
	due = gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buf));
	gst_event_unref(event);
	if (!GST_CLOCK_TIME_IS_VALID(now) || !GST_CLOCK_TIME_IS_VALID(due))
		return 0;
	return GST_CLOCK_DIFF(due, now);
}

/*
 * The other program has begun to write long after the pipe was opened, or has stood still: what it
 * writes now is of now.
 */
static GstPadProbeReturn on_piped(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstElement *pacer = gst_pad_get_parent_element(pad);
	struct piped *p = data;
	gint64 late = p->any ? lateness(pad, pacer, GST_PAD_PROBE_INFO_BUFFER(info)) : 0;

	if (!p->any || late > PIPE_LATE)
		device_begins(*p->device, pacer, (GstClockTime)late);
	p->any = TRUE;
	gst_object_unref(pacer);
	return GST_PAD_PROBE_OK;
}

static void use_pipe(struct call *c, enum call_device kind, GstElement *elements, int fd)
{
	GstElement *pacer = gst_bin_get_by_name(GST_BIN(elements), "pacer");
	GstPad *pad = gst_element_get_static_pad(pacer, "sink");
	struct piped *p = g_new0(struct piped, 1);

	p->device = &c->devices[kind];
	g_object_set_data_full(G_OBJECT(elements), PIPE, GINT_TO_POINTER(fd), close_pipe);
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_piped, p, g_free);
	gst_object_unref(pad);
	gst_object_unref(pacer);
}

/* What file() has made gets what the path names now, which may be another file each time. */
static void name_files(GstElement *elements, gpointer call)
{
	GstElement *sound = gst_bin_get_by_name(GST_BIN(elements), SOUND_FILE);
	struct call *c = call;

	if (sound)
		g_object_set(sound, "location", c->audio_sink, NULL);
	gst_clear_object(&sound);
	for (int i = 0; i < CALL_DEVICES; i++) {
		GstElement *decoder =
			files[i] ? gst_bin_get_by_name(GST_BIN(elements), files[i]) : NULL;
		char *uri;
		int fd;

		if (!decoder)
			continue;
		uri = source_uri(path_of(c, i), &fd, NULL);
		if (!uri) /* its element says why */
			uri = gst_filename_to_uri(path_of(c, i), NULL);
		g_object_set(decoder, "uri", uri, NULL);
		if (fd >= 0)
			use_pipe(c, i, elements, fd);
		g_free(uri);
		gst_object_unref(decoder);
	}
}

void call_watch_pipes(struct call *c)
{
	for (int i = 0; i < CALL_DEVICES; i++) {
		GstElement *elements = device_elements(c->devices[i]);
		gpointer fd = elements ? g_object_get_data(G_OBJECT(elements), PIPE) : NULL;

		if (fd && device_waits(c->devices[i]) &&
		    !source_is_that_pipe(path_of(c, i), GPOINTER_TO_INT(fd)))
			device_lose(c->devices[i], "the pipe has been replaced or removed");
	}
}

/* Pictures of @any, which is freed, in that size and rate: what has another shape gets borders. */
static char *shaped(char *any, const struct y4m *as)
{
	char *text = g_strdup_printf("%s ! " SOURCE_UPRIGHT " ! videoscale ! videorate ! "
				     "video/x-raw,format=I420,width=%d,height=%d,framerate=%d/%d,"
				     "pixel-aspect-ratio=%d/%d",
				     any, as->width, as->height, as->fps_n, as->fps_d, as->par_n,
				     as->par_d);

	g_free(any);
	return text;
}

static char *camera(struct call *c)
{
	char *any;

	if (g_str_has_suffix(c->source, ".y4m") && !source_is_pipe(c->source) &&
	    y4m_open(&c->y4m, c->source, NULL))
		return y4m_camera(c);
	if (!strcmp(c->source, "test"))
		any = g_strdup("videotestsrc is-live=true pattern=ball");
	else if (!strcmp(c->source, "screen"))
		any = g_strdup(found(c, CALL_CAMERA, "ximagesrc use-damage=false"));
	else if (choose_is(c->source, "camera") || g_str_has_prefix(c->source, "/dev/video"))
		any = device_camera(c);
	else
		any = file(CALL_CAMERA, "video/x-raw");
	return shaped(any, &(struct y4m){.width = c->width,
					 .height = c->height,
					 .fps_n = c->fps,
					 .fps_d = 1,
					 .par_n = 1,
					 .par_d = 1});
}

void call_camera_lost(struct call *c)
{
	char *elements;

	if (!c->y4m.frames)
		return;
	feed_stop(g_steal_pointer(&c->feeds[CALL_VIDEO]));
	elements = shaped(file(CALL_CAMERA, "video/x-raw"), &c->y4m);
	device_replace(c->devices[CALL_CAMERA], elements);
	g_free(elements);
	y4m_close(&c->y4m);
}

static char *microphone(struct call *c)
{
	if (choose_is(c->audio, "mic"))
		return g_strdup(found(c, CALL_MICROPHONE, "autoaudiosrc"));
	if (!strcmp(c->audio, "test"))
		return g_strdup("audiotestsrc is-live=true wave=ticks");
	c->samples = source_is_pipe(c->audio) ? NULL : samples_load(c->audio, NULL);
	if (!c->samples)
		return file(CALL_MICROPHONE, "audio/x-raw");
	return g_strdup("appsrc name=microphone is-live=true format=time max-buffers=10 "
			"leaky-type=downstream caps=" SAMPLES_CAPS);
}

#define WINDOW "videoconvert ! autovideosink"

static char *screen(struct call *c)
{
	if (is_none(c->sink))
		return g_strdup("fakesink sync=true async=false");
	if (strcmp(c->sink, "window"))
		return g_strdup("appsink name=y4m sync=true async=false max-buffers=8 "
				"caps=video/x-raw,format=I420");
	/* statistics, where there are letters for them */
	if (gst_registry_check_feature_version(gst_registry_get(), "textoverlay", 1, 0, 0))
		return g_strdup("textoverlay name=overlay valignment=top halignment=left "
				"font-desc=\"Sans 8\" ! " WINDOW);
	return g_strdup(WINDOW);
}

static char *loudspeaker(struct call *c)
{
	if (is_none(c->audio_sink))
		return g_strdup("fakesink sync=true async=false");
	if (!choose_is(c->audio_sink, "auto"))
		/* what comes out of wavenc has no time any more */
		return g_strdup("audioconvert ! wavenc name=asink ! filesink name=" SOUND_FILE
				" async=false");
	return g_strdup_printf("audioconvert ! audioresample ! %s",
			       found(c, CALL_SPEAKER, "autoaudiosink"));
}

/*
 * A key in a window: told on the bus, as the terminal's keys belong to the main loop. Any thread.
 */
static GstPadProbeReturn on_window_event(GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
	GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
	struct call *c = data;
	const char *key;

	(void)pad;
	if (GST_EVENT_TYPE(event) != GST_EVENT_NAVIGATION)
		return GST_PAD_PROBE_OK;
	if (gst_navigation_event_get_type(event) == GST_NAVIGATION_EVENT_KEY_PRESS &&
	    gst_navigation_event_parse_key_event(event, &key))
		gst_element_post_message(
			c->pipeline,
			gst_message_new_application(
				GST_OBJECT(c->pipeline),
				gst_structure_new(CALL_KEY, "key", G_TYPE_STRING, key, NULL)));
	return GST_PAD_PROBE_DROP;
}

static const struct {
	const char *joint;
	gboolean source;
	GstPadProbeCallback probe;
	const char *usual, *what; /* the option's word, and what people call it */
} kinds[CALL_DEVICES] = {
	[CALL_CAMERA] = {"camera-joint", TRUE, NULL, "camera", "camera"},
	[CALL_MICROPHONE] = {"microphone-joint", TRUE, NULL, "mic", "microphone"},
	[CALL_SCREEN] = {"screen-joint", FALSE, call_on_video_played, "window", "window"},
	[CALL_SPEAKER] = {"speaker-joint", FALSE, call_on_audio_played, "auto", "loudspeaker"},
	[CALL_SELF] = {"self-joint", FALSE, NULL, "window", "own window"},
};

/* What the option for a device says, and the elements that this means; free with g_free(). */
static char *chosen(struct call *c, enum call_device kind, const char **option)
{
	switch (kind) {
	case CALL_CAMERA:
		*option = c->source;
		return camera(c);
	case CALL_MICROPHONE:
		*option = c->audio;
		return microphone(c);
	case CALL_SCREEN:
		*option = c->sink;
		return screen(c);
	case CALL_SPEAKER:
		*option = c->audio_sink;
		return loudspeaker(c);
	default:
		*option = "window";
		return g_strdup(WINDOW " sync=false");
	}
}

gboolean call_use_device(struct call *c, enum call_device kind, GError **error)
{
	const char *option;
	char *elements = chosen(c, kind, &option);
	gboolean usual = choose_is(option, kinds[kind].usual);
	struct device_params p = {
		.what = strcmp(option, kinds[kind].usual) ? option : kinds[kind].what,
		.elements = elements,
		.source = kinds[kind].source,
		.counts = kind == CALL_MICROPHONE && usual,
		.returns = DEVICE_RETRIED,
		.pipeline = c->pipeline,
		.joint = part_of(c->pipeline, kinds[kind].joint),
		.probe = kinds[kind].probe,
		.made = kind == CALL_SCREEN ? call_write_y4m : name_files,
		.tell = call_on_device,
		.data = c,
	};

	if (!strcmp(kinds[kind].usual, "window"))
		p.returns = DEVICE_ASKED;
	if (!p.source && !usual)
		p.returns = DEVICE_GONE;
	c->devices[kind] = device_new(&p, error);
	g_free(elements);
	if (c->devices[kind] && p.returns == DEVICE_ASKED) {
		GstPad *pad = gst_element_get_static_pad(p.joint, "src");

		gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_window_event, c, NULL);
		gst_object_unref(pad);
	}
	return c->devices[kind] != NULL;
}
