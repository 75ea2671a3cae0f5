// SPDX-License-Identifier: GPL-2.0
/*
 * Drives an H.264 encoder element through a clip while its rate changes, and
 * records what comes out: for the benchmark, which holds paqmh264enc against
 * x264enc under equal conditions.
 *
 *   bench_element CLIP.y4m RATE[,RATE:FRAME...] OUT "ELEMENT [PROPERTY=VALUE...]"
 *
 * RATE is bit/s at IP level; an element that has no property "rate" gets it as
 * "bitrate" in kbit/s, less what headers take. Writes OUT.h264, OUT.csv (frame,
 * coded, wire bytes, packets, rate, interval in which it is sent, s), and prints the CPU seconds of
 * all pictures.
 */
#include <errno.h>
#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "streamer/gst/gstpaqmh264enc.h"
#include "streamer/rtp/wire.h"

#define MAX_STEPS 100
#define HEADERS wire_headers(false, false)

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + ts.tv_nsec / 1e9;
}

static void set_rate(GstElement *enc, double rate)
{
	if (g_object_class_find_property(G_OBJECT_GET_CLASS(enc), "rate"))
		g_object_set(enc, "rate", (guint64)rate, NULL);
	else
		g_object_set(enc, "bitrate",
			     (guint)(rate * wire_share(WIRE_PACKET, HEADERS) / 1000 + 0.5), NULL);
}

/* What an access unit costs on the wire; the encoder's banner (SEI 5) is not sent. */
static gsize access_unit(const guint8 *p, gsize size, FILE *es, guint *packets)
{
	gsize wire = 0, at = 0, next;

	while (at + 4 <= size) {
		gsize code = p[at + 2] ? 3 : 4, nal = at + code;

		for (next = nal; next < size; next++)
			if (next + 3 <= size && !p[next] && !p[next + 1] &&
			    (p[next + 2] == 1 ||
			     (next + 4 <= size && !p[next + 2] && p[next + 3] == 1)))
				break;
		if (!((p[nal] & 31) == 6 && nal + 1 < size && p[nal + 1] == 5)) {
			wire += wire_bytes(next - nal, WIRE_PACKET, HEADERS);
			*packets += wire_packets(next - nal, WIRE_PACKET, HEADERS);
			fwrite(p + at, 1, next - at, es);
		}
		at = next;
	}
	return wire;
}

/* paqmh264enc tells the pacer how long a picture has. */
static void on_picture(GstElement *enc, const GstStructure *picture, gpointer interval)
{
	(void)enc;
	gst_structure_get(picture, "interval", G_TYPE_DOUBLE, interval, NULL);
}

int main(int argc, char **argv)
{
	double rates[MAX_STEPS], cpu = 0, rate = 0, interval;
	int frames[MAX_STEPS], nsteps = 0, w, h, fps_n, fps_d, n = 0;
	FILE *in, *es, *csv;
	char line[256], *name;
	GError *error = NULL;
	GstElement *enc;
	GstHarness *harness;
	gsize size;

	gst_init(&argc, &argv);
	gst_paqm_h264_enc_register(NULL);
	if (argc != 5) {
		fprintf(stderr, "usage: bench_element CLIP.y4m RATE[,RATE:FRAME...] OUT "
				"\"ELEMENT [PROPERTY=VALUE...]\"\n");
		return 2;
	}
	for (char *s = strtok(argv[2], ","); s && nsteps < MAX_STEPS; s = strtok(NULL, ",")) {
		char *end;

		rates[nsteps] = strtod(s, &end);
		frames[nsteps++] = *end == ':' ? atoi(end + 1) : 0;
	}
	in = fopen(argv[1], "rb");
	if (!in || !fgets(line, sizeof(line), in) ||
	    sscanf(line, "YUV4MPEG2 W%d H%d F%d:%d", &w, &h, &fps_n, &fps_d) != 4) {
		fprintf(stderr, "bench_element: %s is no 4:2:0 y4m file\n", argv[1]);
		return 2;
	}
	enc = gst_parse_launch(argv[4], &error);
	if (!enc) {
		fprintf(stderr, "bench_element: %s\n", error ? error->message : argv[4]);
		return 2;
	}
	name = g_strconcat(argv[3], ".h264", NULL);
	es = fopen(name, "wb");
	g_free(name);
	name = g_strconcat(argv[3], ".csv", NULL);
	csv = fopen(name, "w");
	g_free(name);
	if (!es || !csv) {
		fprintf(stderr, "bench_element: %s: %s\n", argv[3], strerror(errno));
		return 2;
	}
	fprintf(csv, "frame,coded,wire,packets,rate,interval\n");
	interval = (double)fps_d / fps_n;
	if (g_signal_lookup("picture", G_OBJECT_TYPE(enc)))
		g_signal_connect(enc, "picture", G_CALLBACK(on_picture), &interval);
	set_rate(enc, rate = rates[0]);
	harness = gst_harness_new_with_element(enc, "sink", "src");
	name = g_strdup_printf("video/x-raw,format=I420,width=%d,height=%d,framerate=%d/%d", w, h,
			       fps_n, fps_d);
	gst_harness_set_src_caps_str(harness, name);
	g_free(name);
	size = (gsize)w * h * 3 / 2;
	while (fgets(line, sizeof(line), in)) {
		GstBuffer *buf = gst_buffer_new_allocate(NULL, size, NULL), *out;
		guint packets = 0, coded = 0;
		gsize wire = 0;
		GstMapInfo map;
		double before;

		gst_buffer_map(buf, &map, GST_MAP_WRITE);
		if (fread(map.data, 1, size, in) != size)
			break;
		gst_buffer_unmap(buf, &map);
		GST_BUFFER_PTS(buf) = gst_util_uint64_scale(n, fps_d * GST_SECOND, fps_n);
		GST_BUFFER_DURATION(buf) = gst_util_uint64_scale(1, fps_d * GST_SECOND, fps_n);
		for (int i = 1; i < nsteps; i++)
			if (frames[i] == n)
				set_rate(enc, rate = rates[i]);
		before = cpu_s();
		if (gst_harness_push(harness, buf) != GST_FLOW_OK) {
			fprintf(stderr, "bench_element: picture %d: the encoder failed\n", n);
			return 1;
		}
		cpu += cpu_s() - before;
		while ((out = gst_harness_try_pull(harness))) {
			gst_buffer_map(out, &map, GST_MAP_READ);
			wire += access_unit(map.data, map.size, es, &packets);
			coded++;
			gst_buffer_unmap(out, &map);
			gst_buffer_unref(out);
		}
		fprintf(csv, "%d,%u,%" G_GSIZE_FORMAT ",%u,%.0f,%.6f\n", n++, coded, wire, packets,
			rate, interval);
	}
	printf("{\"frames\": %d, \"cpu_s\": %.4f}\n", n, cpu);
	gst_harness_teardown(harness);
	fclose(in);
	return fclose(es) | fclose(csv) ? 1 : 0;
}
