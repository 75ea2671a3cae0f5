/* SPDX-License-Identifier: GPL-2.0 */
/* paqm-streamer call: what its parts share. */
#ifndef PAQM_CALL_H
#define PAQM_CALL_H

#include <gst/gst.h>
#include <stdio.h>

#include "streamer/call/capture.h"
#include "streamer/call/carriage.h"
#include "streamer/call/device.h"
#include "streamer/call/echo.h"
#include "streamer/call/ice.h"
#include "streamer/call/keys.h"
#include "streamer/call/link.h"
#include "streamer/call/offer.h"
#include "streamer/call/samples.h"
#include "streamer/call/scarce.h"
#include "streamer/call/unheard.h"
#include "streamer/call/sound.h"
#include "streamer/call/tell.h"
#include "streamer/media/feed.h"
#include "streamer/rtp/guard.h"
#include "streamer/recv/inbound.h"
#include "streamer/rtp/losses.h"
#include "streamer/rtp/reports.h"
#include "streamer/encoder/adaptor.h"
#include "streamer/outgoing/outgoing.h"
#include "streamer/media/size.h"
#include "streamer/media/source.h"

/*
 * Playout delay of what has arrived, picture and sound alike: what is late or lost and sent
 * again has JITTER_MS in the beginning, then what the path needs between the bounds (inbound.h);
 * DECODE_MS more are for decoders and for sound in pieces of 20 ms.
 */
#define JITTER_MS 60
#define JITTER_MIN_MS 60
#define JITTER_MAX_MS 400
#define DECODE_MS 40

/* What a recording of a call consists of; every file may be missing (NULL). */
struct call_record {
	char *dir;
	FILE *frames, *gop, *feedback, *control; /* what was sent */
	FILE *rx;				 /* video packets that came */
	FILE *play[CALL_MEDIA];			 /* what was shown and heard */
	FILE *rtcp;				 /* reports of the peer */
	FILE *inbound;				 /* losses, and how long was waited */
	FILE *events;				 /* mute, loss of the daemon, the end */
};

#define CALL_RX_HEADER "t_ns,seq,rtp_ts,marker,wire_bytes"
#define CALL_PLAY_HEADER "index,capture_ns,arrival_ns,play_ns"
#define CALL_RTCP_HEADER "t_ns,media,fraction_lost,packets_lost,jitter_ms,rtt_ms"
#define CALL_EVENTS_HEADER "t_ns,event,detail"

gboolean call_record_open(struct call_record *r, const char *dir, GError **error);
void call_record_event(struct call_record *r, const char *event, const char *detail);
gboolean call_record_close(struct call_record *r);

/* What comes of one kind. */
struct call_in {
	GstElement *inlet;	/* where the peer's stream goes; NULL: it sends none */
	GstElement *rtp, *rtcp; /* sockets; one for both: NULL */
};

#define CALL_KEY "paqm-call-key" /* message of the pipeline: a key was pressed in a window */

enum call_device {
	CALL_CAMERA,
	CALL_MICROPHONE,
	CALL_SCREEN,
	CALL_SPEAKER,
	CALL_SELF,
	CALL_DEVICES
};

struct call {
	/* options */
	gboolean listen; /* or, at a rendezvous, this end was first */
	gboolean self_view, muted, dscp, must_cancel;
	gint dark; /* atomic: the camera is off */
	gint port; /* the first one for media; 0: any */
	gint fec;  /* packets that correct, per cent of the picture's */
	char *secret_path, *source, *audio, *sink, *audio_sink, *record_dir, *name, *paqmd,
		*rate_max_text, *rate_min_text, *controller, *encoder, *ecn_text, *carrier;
	char *echo_text, *size_text;
	char *meet_text, *ice_text, *stun_text, *turn_text, *turn_secret_path;
	gdouble duration;

	GInetSocketAddress *stun, *turn;
	char *turn_user;
	GBytes *turn_secret;
	gboolean wants_ice;
	GNetworkAddress *where; /* to listen, to meet, or whom to call; NULL: on all addresses */
	struct call_link *link;
	struct offer mine, theirs;
	GSocket *rtp[CALL_MEDIA], *rtcp[CALL_MEDIA]; /* one for both: NULL */
	char *path[CALL_MEDIA];			     /* that ICE has found, in words */
	struct ice *ice; /* finds the path in their place, which are NULL then; or NULL */
	gboolean ipv6;	 /* media are */

	int width, height, fps; /* of the picture that is sent */
	struct y4m y4m;
	GBytes *samples;
	struct feed *feeds[CALL_MEDIA];

	GMainLoop *main;
	struct keys keys;
	GstElement *pipeline, *bin, *mute, *opus;
	struct call_in in[CALL_MEDIA];
	char *found[CALL_DEVICES];	      /* elements of those that were named; else NULL */
	struct portal *portal;		      /* shows a Wayland session's screen, or NULL */
	struct device *devices[CALL_DEVICES]; /* NULL: there is no need for it */
	guint quiet_for[CALL_DEVICES];	      /* s for which they have given nothing */
	guint64 window;			      /* of the screen, as fullscreen.h has it */
	struct size size;		      /* of the peer's pictures */
	GObject *session[CALL_MEDIA];
	struct capture capture[CALL_MEDIA];
	struct guard *guard[CALL_MEDIA]; /* only the peer's streams get in */
	struct outgoing out;		 /* pictures; stopped: the peer does not take media yet */
	struct scarce scarce;
	struct unheard unheard;
	guint pictures_out;	       /* up to the second before */
	gint64 report_at;	       /* likewise, the newest on the picture */
	guint64 pictures_played;       /* likewise */
	guint blank_for;	       /* s without a picture of the peer */
	GInetSocketAddress *from, *to; /* where they go; @from: ICE has said so, or NULL */
	struct inbound *inbound;       /* what comes */
	struct call_tell *tell;	       /* and what its sender is told of it */
	struct carriage *carriage;     /* and of its rate by routers, if it sends probes */
	gint play_ms;		       /* atomic: playout delay */
	gint64 wall_offset;	       /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	guint64 played[CALL_MEDIA];
	double fraction_lost, rtt_ms;
	struct reports *reports[CALL_MEDIA]; /* of the peer */
	struct losses sound_losses;	     /* of what is sent */
	guint sound_told;		     /* to the encoder, per cent */
	struct sound_in sound;		     /* what comes */
	struct echo *echo;
	gboolean cancels; /* the loudspeaker's sound is taken out of the microphone's */
	gboolean peer_muted, peer_dark; /* has its camera off */
	struct call_record rec;
	const char *why; /* the call ended */
	const char *bye; /* what the peer is to know of it; NULL: nothing */
	char *said;	 /* what the peer has said of it, in our words */
	int status;
};

/* Is a variable of the environment set, and not empty? */
static inline gboolean call_env(const char *variable)
{
	const char *word = g_getenv(variable);

	return word && *word;
}

/* RTP payload type of an end's pictures. */
static inline guint call_payload(const struct offer *o)
{
	guint payload = o->stream[CALL_VIDEO].payload;

	return payload ? payload : CODEC_H264_PT;
}

static inline gboolean call_sends_video(const struct call *c)
{
	return c->mine.stream[CALL_VIDEO].sends;
}

/* events.c */
/* Ends the main loop; the first reason counts. */
void call_end(struct call *c, const char *why);
/* A device is lost, or back; see device.h. */
void call_on_device(const char *what, enum device_return returns, const char *why, gpointer data);

/* call.c: what the peer says after its offer; see link.h */
void call_on_line(const char *line, gsize len, const char *why, gpointer data);

/* setup.c */
gboolean call_parse(struct call *c, int argc, char **argv, GError **error);
gboolean call_agree(struct call *c, GError **error);
gboolean call_write_config(struct call *c, GError **error);
gboolean call_open_sockets(struct call *c, GError **error);
/* Is there the encoder? What it leaves to headers depends on the way to the peer. */
gboolean call_use_encoder(struct call *c, GError **error);
extern const guint call_dscp[CALL_MEDIA];

/* path.c: ICE of a call, from its options to paths that change. */
gboolean call_parse_ice(struct call *c, GError **error);
/* In place of the sockets. */
gboolean call_offer_ice(struct call *c, GError **error);
/* If the peer knows it, too; else the sockets are there again. */
gboolean call_use_ice(struct call *c, GError **error);
/* Of pictures; after the pipeline has been built. */
void call_follow_path(struct call *c);
void call_clear_ice(struct call *c);

/* srtp.c: lets rtpbin encrypt with our keys and decrypt with the peer's. */
void call_use_srtp(struct call *c);

/* ends.c: what is at an end comes into the pipeline, where its joint is. */
gboolean call_find_devices(struct call *c, GError **error); /* those that have names */
gboolean call_use_device(struct call *c, enum call_device kind, GError **error);
/* Main loop, now and then: a pipe that was made anew is opened anew. */
void call_watch_pipes(struct call *c);
/*
 * Main loop, when the camera is lost: a y4m file that comes back is another one, of which nothing
 * is known. It is then decoded as any file is, in the size and rate of the one before.
 */
void call_camera_lost(struct call *c);

/* media.c */
/* Whom a call was made to should not be the one who learns that something is not installed. */
gboolean call_has_elements(GError **error);
gboolean call_build(struct call *c, GError **error);
/* quiet.c: main loop, each second: tells of cameras and microphones that give nothing. */
#define QUIET_S 10
void call_watch_quiet(struct call *c);

/* y4mfile.c: if the peer's pictures go to a file, what writes them; see device.h, made. */
void call_write_y4m(GstElement *elements, gpointer data);

/* Main loop, every INBOUND_TICK_MS: what comes waits as long as its path needs. */
gboolean call_on_inbound(gpointer data);
/* Opens devices; takes what comes to the sockets; starts files. */
void call_start_media(struct call *c);
/* Lets devices rest. The head of a sound file tells its length: that is known only now. */
void call_finish_media(struct call *c);

/* watch.c */
GstPadProbeReturn call_on_raw_sound(GstPad *pad, GstPadProbeInfo *info, gpointer data);
void call_on_group(GstElement *enc, const GstStructure *g, gpointer data);
GstPadProbeReturn call_on_packet(GstPad *pad, GstPadProbeInfo *info, gpointer data);
GstPadProbeReturn call_on_proven(GstPad *pad, GstPadProbeInfo *info, gpointer data);
GstPadProbeReturn call_on_video_played(GstPad *pad, GstPadProbeInfo *info, gpointer data);
GstPadProbeReturn call_on_audio_played(GstPad *pad, GstPadProbeInfo *info, gpointer data);
gboolean call_on_second(gpointer data);

#endif /* PAQM_CALL_H */
