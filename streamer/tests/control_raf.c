// SPDX-License-Identifier: GPL-2.0
/* RAF: the 80 rows that its report prints, its message, both sides against each other. */
#include <string.h>

#include "streamer/decide/decide.h"
#include "streamer/decide/raf.h"
#include "streamer/tests/control_path.h"

/* avail, and the share of lost pictures in the runs with one to five layers, in millionths */
static const struct {
	uint32_t avail, lost[RAF_LAYERS];
} printed[] = {
	{2048000, {0}},
	{2048000, {0}},
	{483365, {0}},
	{687524, {0}},
	{427638, {180328, 180328, 180328, 172414, 196721}},
	{103115, {214286, 214286, 228916, 250000, 238095}},
	{157852, {181818, 193878, 232323, 224490, 224490}},
	{466414, {230769, 76923, 0, 71429, 71429}},
	{583089, {444444, 142857, 71429, 68966, 68966}},
	{75898, {404762, 159091, 142857, 69767, 113636}},
	{105247, {350877, 118644, 105263, 84746, 133333}},
	{305500, {200000, 600000, 0, 600000, 0}},
	{446461, {200000, 600000, 0, 600000, 0}},
	{430702, {200000, 600000, 0, 600000, 0}},
	{553428, {0, 600000, 0, 600000, 0}},
	{610739, {0, 600000, 0, 600000, 0}},
};

/* Per layer: without loss, and with it at 20, 25 and 30 pictures per second. */
static const struct {
	int width, height;
	double kbps;
} sizes[RAF_LAYERS][4] = {
	{{156, 117, 54.756}, {128, 96, 55.296}, {112, 84, 52.920}, {104, 78, 54.756}},
	{{236, 177, 125.316}, {192, 144, 124.416}, {172, 129, 124.808}, {156, 117, 123.201}},
	{{336, 252, 254.016}, {272, 204, 249.696}, {244, 183, 251.168}, {224, 168, 254.016}},
	{{476, 357, 509.796}, {388, 291, 508.086}, {348, 261, 510.908}, {316, 237, 505.521}},
	{{480, 360, 518.400}, {476, 357, 764.694}, {424, 318, 758.430}, {388, 291, 762.129}},
};

static const struct raf_user wish = {480, 4, 3, 200, 15};

static struct raf_choice choose(uint32_t avail, uint32_t lost, int layers)
{
	return raf_choose(avail, lost, 1000000 - lost, layers, &wish);
}

TEST(test_raf_printed)
{
	int rows = 0;

	for (size_t i = 0; i < ROWS(printed); i++)
		for (int n = 1; n <= RAF_LAYERS; n++, rows++) {
			uint32_t lost = printed[i].lost[n - 1];
			/* of 15 that are wished, so many have to be sent */
			int column = lost < 100000    ? 0
				     : lost <= 250000 ? 1
				     : lost <= 400000 ? 2
						      : 3;
			struct raf_choice c = choose(printed[i].avail, lost, n);
			int layer = 0;

			while (layer + 1 < n && raf_ladder[layer + 1] <= printed[i].avail)
				layer++;
			SAME("layer", c.layer, layer);
			SAME("width", c.width, sizes[layer][column].width);
			SAME("height", c.height, sizes[layer][column].height);
			near("rate", raf_rate(&c) / 1e3, sizes[layer][column].kbps, 0.001);
			SAME("pictures per second", c.fps,
			     column	  ? 15 + 5 * column
			     : layer == 4 ? 15
					  : 30);
			SAME("bits per pixel", c.millibits, column ? 225 : layer == 4 ? 200 : 100);
			TRUE("within the layer", raf_rate(&c) <= raf_cap(layer, 15));
		}
	SAME("rows", rows, 80);
}

TEST(test_raf_vectors)
{
	static const struct {
		uint32_t avail, lost;
		int layers, layer, width, height, millibits, fps;
		uint32_t rate;
	} rows[] = {
		{2048000, 0, 5, 4, 480, 360, 200, 15, 518400},
		{2048000, 0, 4, 3, 476, 357, 100, 30, 509796},
		{483365, 0, 4, 2, 336, 252, 100, 30, 254016},
		{427638, 148148, 3, 2, 272, 204, 225, 20, 249696},
		{103115, 214286, 3, 0, 128, 96, 225, 20, 55296},
		{105247, 350877, 1, 0, 112, 84, 225, 25, 52920},
		{583089, 444444, 1, 0, 104, 78, 225, 30, 54756},
		{446461, 600000, 3, 2, 224, 168, 225, 30, 254016},
		{300000, 84700, 5, 2, 336, 252, 100, 30, 254016},
		{300000, 250000, 5, 2, 272, 204, 225, 20, 249696},
		{300000, 250100, 5, 2, 244, 183, 225, 25, 251168},
		{40000, 0, 5, 0, 156, 117, 100, 30, 54756},
	};
	static const uint32_t caps[] = {55920, 127920, 255960, 511920, 768000};
	struct raf_user wide = {480, 16, 9, 200, 15}, tiny = {64, 4, 3, 250, 30};
	struct raf_choice c;

	for (size_t i = 0; i < ROWS(rows); i++) {
		c = choose(rows[i].avail, rows[i].lost, rows[i].layers);
		SAME("layer", c.layer, rows[i].layer);
		SAME("width", c.width, rows[i].width);
		SAME("height", c.height, rows[i].height);
		SAME("bits per pixel", c.millibits, rows[i].millibits);
		SAME("pictures per second", c.fps, rows[i].fps);
		SAME("rate", raf_rate(&c), rows[i].rate);
	}
	for (int i = 0; i < RAF_LAYERS; i++)
		SAME("whole bytes per picture", raf_cap(i, 15), caps[i]);
	c = raf_choose(300000, 0, 0, 5, &wide);
	SAME("16:9", c.width * 1000 + c.height, 384216);
	SAME("rate of it", raf_rate(&c), 248832);
	c = raf_choose(0, 9, 1, 1, &wide);
	TRUE("fewer pictures before smaller ones than 64x48",
	     c.width >= 64 && c.height >= 48 && raf_rate(&c) <= 55920);
	c = raf_choose(0, 9, 1, 1, &tiny);
	SAME("smallest", c.width * 1000 + c.height, 64048);
	c = choose(2048000, 0, 5);
	SAME("opinion", raf_opinion(&c), 42000);
	c = choose(300000, 250100, 5);
	SAME("opinion with loss", raf_opinion(&c), 78750);
}

TEST(test_raf_message)
{
	struct raf_request q = {.choice = choose(427638, 148148, 3),
				.media = 7,
				.avail = 427638,
				.lost = 4,
				.received = 23},
			   got;
	uint8_t data[RAF_LEN + 4] = {0};

	raf_write(&q, data);
	TRUE("read", raf_read(data, RAF_LEN, 3, &got));
	TRUE("the same", !memcmp(&q.choice, &got.choice, sizeof(q.choice)) && got.media == 7 &&
				 got.avail == 427638 && got.lost == 4 && got.received == 23);
	TRUE("longer", !raf_read(data, RAF_LEN + 4, 3, &got));
	TRUE("a layer that is not there", !raf_read(data, RAF_LEN, 2, &got));
	data[5] = 40;
	TRUE("more than any layer has", !raf_read(data, RAF_LEN, 3, &got));
	data[5] = 30;
	TRUE("more than this layer carries", !raf_read(data, RAF_LEN, 3, &got));
	data[5] = 0;
	TRUE("none at all", !raf_read(data, RAF_LEN, 3, &got));
}

/* A picture of so many packets, back to back at @rate; one of them may be lost. */
static void picture(struct dec *d, double at, uint32_t ts, uint16_t *seq, int packets, double rate,
		    int lost)
{
	for (int i = 0; i < packets; i++, (*seq)++) {
		struct dec_packet p = {.at = at + i * 8000 / rate,
				       .bytes = 1000,
				       .ts = ts,
				       .seq = *seq,
				       .marker = i + 1 == packets};

		if (i != lost)
			dec_see(d, 7, &p);
	}
}

/* Both sides: what the receiver measures reaches the sender's format. */
TEST(test_raf_sides)
{
	double option[CTL_OPTIONS];
	char why[100];
	struct ctl_params q = params;
	struct ctl_message m;
	struct ctl_format f;
	uint8_t app[DEC_APP];
	uint16_t seq = 65500;
	struct ctl *c;
	struct dec *d;
	size_t len;
	int told = 0;

	TRUE("options", ctl_choose("raf:layers=4", option, why, sizeof(why)) == &ctl_raf);
	q.option = option;
	q.rate_min = 10e3;
	c = ctl_new(&ctl_raf, &q, 0);
	d = dec_new(dec_find("raf"), option, 0);
	SAME("as if nothing were measured", ctl_rate(c, 0), 509796);
	SAME("nothing to tell yet", dec_tell(d, 0, 1, app), 0);
	for (int i = 0; i < 60; i++) {
		/* 300 kbit/s; from the second second on a tenth and more of the pictures is broken
		 */
		picture(d, i / 30.0, 3000 * (uint32_t)i, &seq, 3, 300e3,
			i > 31 && i % 4 ? -1
			: i > 31	? 1
					: -1);
		len = dec_tell(d, i / 30.0 + 0.03, 1, app);
		if (!len)
			continue;
		told++;
		TRUE("a message", dec_read(app, len, &m) && m.name == RAF_APP);
		TRUE("no shorter", !dec_read(app, len - 4, &m) && dec_read(app, len, &m));
		ctl_message(c, i / 30.0, &m);
		ctl_format(c, &f);
		if (told == 2) {
			SAME("third layer", state(c, "raf.layer"), 2);
			SAME("its size", f.width * 1000 + f.height, 336252);
		}
	}
	SAME("at once, and each second", told, 2);
	dec_tell(d, 2.2, 1, app);
	TRUE("third", dec_read(app, DEC_APP - DEC_DATA + RAF_LEN, &m));
	ctl_message(c, 2.2, &m);
	ctl_format(c, &f);
	SAME("more pictures, since a quarter of them is lost", f.fps, 20);
	SAME("smaller ones", f.width, 272);
	SAME("understood", state(c, "raf.messages"), 3);
	m.name++;
	ctl_message(c, 2.3, &m);
	SAME("another's", state(c, "raf.refused"), 1);
	ctl_rate(c, 6.3);
	SAME("silence: the lowest layer", state(c, "raf.layer"), 0);
	ctl_free(c);
	dec_free(d);
}
