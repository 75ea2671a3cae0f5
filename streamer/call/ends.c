// SPDX-License-Identifier: GPL-2.0
/* Both ends of what is seen and heard in a call: devices, files, test pictures. */
#include <string.h>

#include "streamer/call/state.h"
#include "streamer/media/parts.h"

static gboolean is_none(const char *text)
{
	return !strcmp(text, "none");
}

/*
 * What to ask of a camera, the best first: left alone it would give its largest picture, at few a
 * second.
 */
#define CAMERA_SIZES(kind)                                                                         \
	kind ",width=640,height=360,framerate=30/1; " kind ",width=640,height=360; " kind          \
	     ",width=640,height=480,framerate=30/1; " kind ",width=640,height=480; "
#define CAMERA                                                                                     \
	CAMERA_SIZES("video/x-raw")                                                                \
	CAMERA_SIZES("image/jpeg")                                                                 \
	"image/jpeg,width=1280,height=720; video/x-raw,width=320,height=240; video/x-raw; "        \
	"image/jpeg; video/x-h264"

static char *y4m_camera(struct call *c, GError **error)
{
	char *caps, *elements;
	GstCaps *pictures;

	if (!y4m_open(&c->y4m, c->source, error))
		return NULL;
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

static char *camera(struct call *c, GError **error)
{
	static const char raw[] = "videoconvert ! videoscale ! videorate ! "
				  "video/x-raw,format=I420,width=640,height=360,framerate=24/1";
	char *uri, *text;

	c->out.interval = 1.0 / 24;
	if (!strcmp(c->source, "test"))
		return g_strdup_printf("videotestsrc is-live=true pattern=ball ! %s", raw);
	if (!strcmp(c->source, "screen"))
		return g_strdup_printf("ximagesrc use-damage=false ! %s", raw);
	if (!strcmp(c->source, "camera") || g_str_has_prefix(c->source, "/dev/video"))
		return g_strdup_printf("v4l2src %s%s ! capsfilter caps=\"" CAMERA
				       "\" ! decodebin ! %s",
				       c->source[0] == '/' ? "device=" : "",
				       c->source[0] == '/' ? c->source : "", raw);
	if (g_str_has_suffix(c->source, ".y4m"))
		return y4m_camera(c, error);
	uri = gst_filename_to_uri(c->source, error);
	if (!uri)
		return NULL;
	text = g_strdup_printf("uridecodebin uri=\"%s\" caps=video/x-raw ! identity sync=true ! %s",
			       uri, raw);
	g_free(uri);
	return text;
}

static char *microphone(struct call *c, GError **error)
{
	if (!strcmp(c->audio, "mic"))
		return g_strdup("autoaudiosrc");
	if (!strcmp(c->audio, "test"))
		return g_strdup("audiotestsrc is-live=true wave=ticks");
	c->samples = samples_load(c->audio, error);
	if (!c->samples)
		return NULL;
	return g_strdup_printf("appsrc name=microphone is-live=true format=time max-buffers=10 "
			       "leaky-type=downstream caps=audio/x-raw,format=S16LE,rate=%d,"
			       "channels=1,layout=interleaved",
			       SAMPLES_RATE);
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
	if (strcmp(c->audio_sink, "auto"))
		/* what comes out of wavenc has no time any more */
		return g_strdup_printf(
			"audioconvert ! wavenc name=asink ! filesink location=\"%s\" async=false",
			c->audio_sink);
	return g_strdup("audioconvert ! audioresample ! autoaudiosink");
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
static char *chosen(struct call *c, enum call_device kind, const char **option, GError **error)
{
	switch (kind) {
	case CALL_CAMERA:
		*option = c->source;
		return camera(c, error);
	case CALL_MICROPHONE:
		*option = c->audio;
		return microphone(c, error);
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
	char *elements = chosen(c, kind, &option, error);
	gboolean usual = !strcmp(option, kinds[kind].usual);
	struct device_params p = {
		.what = usual ? kinds[kind].what : option,
		.elements = elements,
		.source = kinds[kind].source,
		.returns = DEVICE_RETRIED,
		.pipeline = c->pipeline,
		.joint = part_of(c->pipeline, kinds[kind].joint),
		.probe = kinds[kind].probe,
		.made = kind == CALL_SCREEN ? call_write_y4m : NULL,
		.tell = call_on_device,
		.data = c,
	};

	if (!strcmp(kinds[kind].usual, "window"))
		p.returns = DEVICE_ASKED;
	if (!p.source && !usual)
		p.returns = DEVICE_GONE;
	if (elements)
		c->devices[kind] = device_new(&p, error);
	g_free(elements);
	return c->devices[kind] != NULL;
}
