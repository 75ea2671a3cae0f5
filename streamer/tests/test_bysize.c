// SPDX-License-Identifier: GPL-2.0
/* Encoders that follow a rate by the size of each picture, and what the packets of theirs are. */
#include <stdlib.h>

#include "core/tests/check.h"
#include "streamer/encoder/bysize.h"
#include "streamer/encoder/payload.h"

TEST(test_line)
{
	struct bysize_line l;

	/* the specification's example: 20000 bytes at 10, 8000 at 50, 12000 wanted */
	CHECK(bysize_fit(&l, 10, 20000, 50, 8000));
	near("y", l.y, 7456.0, 0.05);
	near("x", l.x, 37168.1, 0.05);
	near("q of 12000", bysize_solve(&l, 12000), 29.24, 0.005);
	near("q of 20000", bysize_solve(&l, 20000), 10, 1e-9);
	/* nothing is learnt from sizes that do not fall, nor from one point */
	CHECK(!bysize_fit(&l, 10, 8000, 50, 8000));
	CHECK(!bysize_fit(&l, 10, 8000, 50, 9000));
	CHECK(!bysize_fit(&l, 10, 8000, 10, 8000));
}

TEST(test_jpeg)
{
	int trial[2];

	for (int quality = JPEG_QUALITY_MIN; quality <= JPEG_QUALITY_MAX; quality++) {
		CHECK_EQ(jpeg_quality(jpeg_scale(quality)), quality);
		jpeg_trials(quality, trial);
		check(trial[0] > trial[1], "two of trial", quality);
		check(trial[0] <= JPEG_QUALITY_MAX && trial[1] >= JPEG_QUALITY_MIN, "in range",
		      quality);
	}
	near("scale of 50", jpeg_scale(50), 100, 0);
	near("scale of 10", jpeg_scale(10), 500, 0);
	/* between two qualities the coarser one, or more bytes would come than are wanted */
	CHECK_EQ(jpeg_quality(101), 49);
	CHECK_EQ(jpeg_quality(99), 50);
	CHECK_EQ(jpeg_quality(1e9), JPEG_QUALITY_MIN);
	CHECK_EQ(jpeg_quality(0), JPEG_QUALITY_MAX);
}

TEST(test_next)
{
	static const int low[2] = {2, 1}, middle[2] = {60, 40};
	int trial[2];

	/* quantizers at their end: no leap to the finest */
	CHECK_EQ(jpeg_next(low, (double[2]){5260, 5243}, 12000), 4);
	CHECK_EQ(jpeg_next(low, (double[2]){5243, 5243}, 12000), 2);
	CHECK_EQ(jpeg_next(low, (double[2]){5243, 5243}, 3000), 1);
	/* downwards at once, upwards by half of the scale */
	CHECK_EQ(jpeg_next(middle, (double[2]){20000, 15000}, 1), 10);
	CHECK_EQ(jpeg_next(middle, (double[2]){20000, 15000}, 1e9), 80);
	CHECK_EQ(jpeg_next(middle, (double[2]){20000, 15000}, 20000), 60);
	CHECK_EQ(jpeg_next(middle, (double[2]){20000, 15000}, 15000), 40);
	/* from anywhere it comes to rest at what the model's encoder needs, however far */
	for (int quality = JPEG_QUALITY_MIN; quality <= JPEG_QUALITY_MAX; quality += 7) {
		int at = quality;

		for (int n = 0; n < 20; n++) {
			double bytes[2];

			jpeg_trials(at, trial);
			for (int i = 0; i < 2; i++)
				bytes[i] = 60000 - 8000 * log(jpeg_scale(trial[i]));
			at = jpeg_next(trial, bytes, 60000 - 8000 * log(250));
		}
		CHECK_EQ(at, 20);
	}
}

TEST(test_raw)
{
	near("rows filled up to four bytes", raw_bytes(30, 2), 54 + 92 * 2, 0);
	near("and those that need it not", raw_bytes(40, 22), 2694, 0);
	CHECK_EQ(raw_side(640, 0), 640);
	CHECK_EQ(raw_side(360, 8), 22);
	CHECK_EQ(raw_side(2, 8), 2);
	for (int n = 0; n < RAW_SIZES; n++) {
		double bytes = raw_bytes(raw_side(640, n), raw_side(360, n));

		CHECK_EQ(raw_size(640, 360, bytes), n);
		CHECK_EQ(raw_size(640, 360, bytes - 1), n < RAW_SIZES - 1 ? n + 1 : n);
	}
}

TEST(test_payload)
{
	static const uint8_t caps[] = "\x80\0\0\0\0\0\0\0\x82\x56image/bmp, width=(int)32";
	static const uint8_t others[] = "\x80\0\0\0\0\0\0\0\x82\x56image/png, width=(int)32";
	static const uint8_t more[] = "\x80\0\0\0\0\0\x01\0image/png";
	static const uint8_t data[] = {0, 0, 0, 0, 0, 0, 0, 0, 'B', 'M'};
	static const uint8_t event[] = {0, 4, 0, 0, 0, 0, 0, 0, 5};

	CHECK(payload_expects(CODEC_BMP_PT, caps, sizeof(caps)));
	CHECK(!payload_is_media(CODEC_BMP_PT, caps, sizeof(caps)));
	CHECK(!payload_expects(CODEC_BMP_PT, others, sizeof(others)));
	CHECK(payload_expects(CODEC_BMP_PT, more, sizeof(more)));
	CHECK(payload_expects(CODEC_BMP_PT, data, sizeof(data)));
	CHECK(payload_is_media(CODEC_BMP_PT, data, sizeof(data)));
	CHECK(!payload_expects(CODEC_BMP_PT, event, sizeof(event)));
	CHECK(!payload_is_media(CODEC_BMP_PT, event, sizeof(event)));
	/* all beginnings of it: nothing behind the end is read, and none is whole enough */
	for (size_t len = 0; len < 8 + 2 + strlen(BMP_CAPS); len++) {
		uint8_t *copy = malloc(len + !len);

		memcpy(copy, caps, len);
		check(!payload_expects(CODEC_BMP_PT, copy, len), "cut caps", len);
		free(copy);
	}
	CHECK(payload_expects(CODEC_H264_PT, (const uint8_t *)"\x65", 1));
	CHECK(!payload_expects(CODEC_H264_PT, (const uint8_t *)"\x1e", 1));
	CHECK(!payload_expects(CODEC_H264_PT, data, 0));
	CHECK(payload_is_media(CODEC_H264_PT, data, 1));
}

CHECK_MAIN
