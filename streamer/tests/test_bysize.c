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
