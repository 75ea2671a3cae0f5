// SPDX-License-Identifier: GPL-2.0
/* In-band FEC of a call's sound: Opus' own packets, and what is told of losses. */
#include <gst/audio/audio.h>
#include <gst/check/gstharness.h>
#include <string.h>

#include "core/tests/check.h"
#include "streamer/call/sound.h"
#include "streamer/rtp/losses.h"

#define PIECES 100
#define SAMPLES 960

/* Something like a voice: a pitch that glides, and its harmonics. */
static GstBuffer *piece(int n, int channels)
{
	GstBuffer *buf = gst_buffer_new_allocate(NULL, (gsize)channels * SAMPLES * 2, NULL);
	static double phase;
	GstMapInfo map;
	gint16 *sample;

	if (n == 0)
		phase = 0;
	gst_buffer_map(buf, &map, GST_MAP_WRITE);
	sample = (gint16 *)map.data;
	for (int i = 0; i < SAMPLES; i++) {
		double v = 0;

		phase += 2 * G_PI * (130 + 50 * sin((n * SAMPLES + i) / 9000.0)) / 48000;
		for (int k = 1; k < 20; k++)
			v += sin(k * phase) / k;
		for (int c = 0; c < channels; c++)
			*sample++ = (gint16)(4000 * v);
	}
	gst_buffer_unmap(buf, &map);
	GST_BUFFER_PTS(buf) = (GstClockTime)n * 20 * GST_MSECOND;
	GST_BUFFER_DURATION(buf) = 20 * GST_MSECOND;
	return buf;
}

/* All packets in a row; @copies: how many of them have one. */
static GByteArray *encode(const char *options, int channels, int *copies)
{
	char *text =
		g_strdup_printf("opusenc bitrate=32000 audio-type=voice frame-size=20 %s", options);
	GstHarness *h = gst_harness_new_parse(text);
	GByteArray *all = g_byte_array_new();
	char *caps = g_strdup_printf("audio/x-raw,rate=48000,channels=%d,layout=interleaved,"
				     "format=" GST_AUDIO_NE(S16),
				     channels);
	GstBuffer *buf;

	*copies = 0;
	gst_harness_set_src_caps_str(h, caps);
	for (int n = 0; n < PIECES; n++)
		gst_harness_push(h, piece(n, channels));
	while ((buf = gst_harness_try_pull(h))) {
		GstMapInfo map;

		gst_buffer_map(buf, &map, GST_MAP_READ);
		*copies += sound_has_copy(map.data, map.size);
		g_byte_array_append(all, map.data, (guint)map.size);
		gst_buffer_unmap(buf, &map);
		gst_buffer_unref(buf);
	}
	gst_harness_teardown(h);
	g_free(caps);
	g_free(text);
	return all;
}

TEST(test_encoder)
{
	for (int channels = 1; channels <= 2; channels++) {
		int none, idle, some;
		GByteArray *plain = encode("inband-fec=false", channels, &none);
		GByteArray *without =
			encode("inband-fec=true packet-loss-percentage=0", channels, &idle);
		GByteArray *with =
			encode("inband-fec=true packet-loss-percentage=5", channels, &some);

		check(plain->len > PIECES && without->len == plain->len &&
			      !memcmp(plain->data, without->data, plain->len),
		      "without losses the sound is the same, bit by bit", (int)without->len);
		check(none == 0 && idle == 0, "copies without losses", idle);
		check(some > PIECES / 2, "copies with losses", some);
		/* a packet of 20 ms has 80 bytes at that rate */
		check(with->len <= PIECES * 80 * 103 / 100, "copies are within the rate",
		      (int)with->len);
		g_byte_array_unref(plain);
		g_byte_array_unref(without);
		g_byte_array_unref(with);
	}
}

/* RFC 6716: what is no packet of one frame of the speech coder has no copy that we know of. */
TEST(test_packets)
{
	static const struct {
		guint8 packet[2];
		gsize len;
		gboolean copy;
	} cases[] = {
		{{0x78, 0x40}, 0, FALSE}, {{0x78, 0x40}, 1, FALSE},
		{{0x78, 0x40}, 2, TRUE},  /* hybrid, 20 ms: flag behind one of activity */
		{{0x78, 0x80}, 2, FALSE}, /* activity alone */
		{{0x78, 0x10}, 2, FALSE}, /* mono: no side */
		{{0x7c, 0x10}, 2, TRUE},  /* stereo: a copy of the side */
		{{0x7c, 0x20}, 2, FALSE}, /* activity of the side */
		{{0x50, 0x20}, 2, TRUE},  /* wideband, 40 ms: two flags of activity first */
		{{0x50, 0x40}, 2, FALSE}, {{0x58, 0x10}, 2, TRUE},  /* 60 ms: three */
		{{0x80, 0xff}, 2, FALSE},			    /* no speech coder */
		{{0xf8, 0xff}, 2, FALSE}, {{0x79, 0xff}, 2, FALSE}, /* two frames */
		{{0x7b, 0xff}, 2, FALSE},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
		check(sound_has_copy(cases[i].packet, cases[i].len) == cases[i].copy, "packet", i);
}

TEST(test_losses)
{
	struct losses l = {0};
	guint32 at = 0xfffffff0U; /* numbers begin anew on the way */
	int lost = 0;

	same("nothing is known", losses_percent(&l), 0);
	losses_report(&l, at, 7);
	same("one report: since when is not known", losses_percent(&l), 0);
	for (int n = 0; n < 30; n++) {
		losses_report(&l, at += 50, 7);
		same("nothing is lost", losses_percent(&l), 0);
	}
	losses_report(&l, at += 50, 7 + ++lost);
	same("the first loss counts at once", losses_percent(&l), 1);
	for (int n = 0; n < 20; n++)
		losses_report(&l, at += 50, 7 + (lost += n % 2 ? 3 : 2));
	same("2 and 3 of 50 in turn, nine reports", losses_percent(&l), 6);
	for (int n = 0; n < LOSSES_REPORTS - 2; n++)
		losses_report(&l, at += 50, 7 + lost);
	same("the last loss goes", losses_percent(&l), 1);
	losses_report(&l, at += 50, 7 + lost);
	same("none lately", losses_percent(&l), 0);
	losses_report(&l, at += 50, 7 + lost - 20);
	same("duplicates", losses_percent(&l), 0);
	losses_report(&l, at + 10, 7 + lost + 100);
	check(losses_percent(&l) <= 100, "more lost than sent", (int)losses_percent(&l));
	losses_report(&l, at - 1000, 50);
	same("another stream", losses_percent(&l), 0);
	losses_report(&l, at - 900, 100);
	same("half of it", losses_percent(&l), 50);
	losses_report(&l, at - 900, 100);
	same("the same again", losses_percent(&l), 50);
}

int main(int argc, char **argv)
{
	gst_init(&argc, &argv);
	return check_run();
}
