/* SPDX-License-Identifier: GPL-2.0 */
/* Pictures for tests of the encoder. */
#ifndef PAQM_TESTS_PICTURES_H
#define PAQM_TESTS_PICTURES_H

#include <gst/gst.h>
#include <string.h>

#define WIDTH 320
#define HEIGHT 192
#define FPS 24
#define PICTURE_CAPS "video/x-raw,format=I420,width=320,height=192,framerate=24/1"

/* Moving texture under film grain; every cut-th picture is a cut to another one. */
static inline GstBuffer *picture(guint n, guint cut, guint detail)
{
	GstBuffer *buf = gst_buffer_new_allocate(NULL, WIDTH * HEIGHT * 3 / 2, NULL);
	guint32 scene = 1 + n / cut;
	GstMapInfo map;

	gst_buffer_map(buf, &map, GST_MAP_WRITE);
	memset(map.data, 128, map.size);
	for (guint y = 0; y < HEIGHT; y++) {
		for (guint x = 0; x < WIDTH; x++) {
			guint32 u = (x + n * 2) / 4, v = (y + n) / 4, grain;
			guint32 r = (u * 73856093U) ^ (v * 19349663U) ^ (scene * 83492791U);

			r ^= r >> 13;
			r *= 2654435761U;
			grain = (x * 2246822519U) ^ (y * 3266489917U) ^ (n * 668265263U);
			grain = ((grain ^ (grain >> 15)) * 2246822519U) >> 29;
			map.data[y * WIDTH + x] =
				(guint8)(124 - detail / 2 + (r >> 24) * detail / 255 + grain);
		}
	}
	gst_buffer_unmap(buf, &map);
	GST_BUFFER_PTS(buf) = gst_util_uint64_scale(n, GST_SECOND, FPS);
	GST_BUFFER_DURATION(buf) = GST_SECOND / FPS;
	return buf;
}

static inline guint32 hash(guint32 x, guint32 y, guint32 seed)
{
	guint32 r = (x * 73856093U) ^ (y * 19349663U) ^ (seed * 83492791U);

	r = (r ^ (r >> 13)) * 2654435761U;
	return (r ^ (r >> 15)) * 2246822519U;
}

/* Detail of every size, each moving its own way: codes somewhat like nature. */
static inline GstBuffer *natural(guint n)
{
	static const guint amplitude[] = {30, 20, 16, 20, 30};
	GstBuffer *buf = gst_buffer_new_allocate(NULL, WIDTH * HEIGHT * 3 / 2, NULL);
	GstMapInfo map;

	gst_buffer_map(buf, &map, GST_MAP_WRITE);
	memset(map.data, 128, map.size);
	for (guint y = 0; y < HEIGHT; y++) {
		for (guint x = 0; x < WIDTH; x++) {
			guint sum = 70;

			for (guint o = 0; o < G_N_ELEMENTS(amplitude); o++)
				sum += (hash((x + n * (o + 2) / 2) >> o, (y + n * o / 3) >> o, o) >>
					24) *
				       amplitude[o] / 255;
			map.data[y * WIDTH + x] = (guint8)sum;
		}
	}
	gst_buffer_unmap(buf, &map);
	GST_BUFFER_PTS(buf) = gst_util_uint64_scale(n, GST_SECOND, FPS);
	GST_BUFFER_DURATION(buf) = GST_SECOND / FPS;
	return buf;
}

#endif /* PAQM_TESTS_PICTURES_H */
