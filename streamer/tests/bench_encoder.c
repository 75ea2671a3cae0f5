// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the encoder on a real clip: how well it keeps its rate, its frame
 * bound and the queue behind a server of exactly the allowance. One JSON
 * object per run.
 *
 *   bench_encoder CLIP.y4m RATE[,RATE:FRAME...] [--mode gop|gop+trim]
 *                 [--delay MS] [--qp-min N] [--start N] [--limit N] [--frames CSV] [--key N]
 *
 * RATE is in bit/s; RATE:FRAME changes to it at that frame.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streamer/h264enc.h"
#include "streamer/wire.h"

#define MAX_FRAMES 20000
#define MAX_STEPS 1000

struct step {
	double rate;
	int frame;
};

static double values[MAX_FRAMES * 40];

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(double *v, size_t n, double p)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), cmp);
	return v[(size_t)(p * (n - 1) + 0.5)];
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench_encoder CLIP.y4m RATE[,RATE:FRAME...] [--mode gop|gop+trim] "
		"[--delay MS] [--qp-min N] [--start N] [--limit N] [--frames CSV] [--key N]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct h264_config cfg = {.mode = H264_MODE_TRIM,
				  .gop = 12,
				  .refresh = 48,
				  .qp_min = 16,
				  .qp_max = 51,
				  .beta = 1.5,
				  .delay = 0.012,
				  .psnr = true};
	static struct step steps[MAX_STEPS];
	static double wire[MAX_FRAMES], rate[MAX_FRAMES];
	int nsteps = 0, n = 0, over = 0, skipped = 0, key_every = 0, start = 0, limit = MAX_FRAMES;
	size_t waits = 0, nal_packets;
	double over_max = 0, psnr = 0, psnr_min = 100, now, free_at = 0, dev = 0, qp_lo = 99,
	       qp_hi = 0, total = 0, allowed = 0;
	const char *frames_path = NULL;
	char line[256], err[200];
	FILE *in, *csv = NULL;
	struct h264_enc *enc;
	uint8_t *buf;

	if (argc < 3)
		return usage();
	for (char *s = strtok(argv[2], ","); s && nsteps < MAX_STEPS; s = strtok(NULL, ",")) {
		char *end;

		steps[nsteps].rate = strtod(s, &end);
		steps[nsteps].frame = *end == ':' ? atoi(end + 1) : 0;
		if (steps[nsteps].rate > cfg.rate_max)
			cfg.rate_max = steps[nsteps].rate;
		nsteps++;
	}
	for (int i = 3; i < argc; i++) {
		if (i + 1 >= argc)
			return usage();
		if (!strcmp(argv[i], "--mode"))
			cfg.mode = strcmp(argv[++i], "gop") ? H264_MODE_TRIM : H264_MODE_GOP;
		else if (!strcmp(argv[i], "--delay"))
			cfg.delay = atof(argv[++i]) / 1000;
		else if (!strcmp(argv[i], "--qp-min"))
			cfg.qp_min = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--start"))
			start = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--limit"))
			limit = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--frames"))
			frames_path = argv[++i];
		else if (!strcmp(argv[i], "--key"))
			key_every = atoi(argv[++i]);
		else
			return usage();
	}
	cfg.rate = steps[0].rate;
	in = fopen(argv[1], "rb");
	if (!in || !fgets(line, sizeof(line), in) ||
	    sscanf(line, "YUV4MPEG2 W%d H%d F%d:%d", &cfg.width, &cfg.height, &cfg.fps_n,
		   &cfg.fps_d) != 4) {
		fprintf(stderr,
			"bench_encoder: %s is not a 4:2:0 y4m file with W H F in its header\n",
			argv[1]);
		return 2;
	}
	enc = h264_open(&cfg, err, sizeof(err));
	buf = malloc((size_t)cfg.width * cfg.height * 3 / 2);
	if (!enc || !buf) {
		fprintf(stderr, "bench_encoder: %s\n", enc ? "out of memory" : err);
		return 2;
	}
	if (frames_path) {
		csv = fopen(frames_path, "w");
		if (!csv) {
			fprintf(stderr, "bench_encoder: %s: %s\n", frames_path, strerror(errno));
			return 2;
		}
		fprintf(csv,
			"frame,gop,type,qp_base,qp,bytes,wire,packets,bound,target,rate,psnr\n");
	}
	while (n < limit && fgets(line, sizeof(line), in)) {
		int size = cfg.width * cfg.height;
		const uint8_t *plane[3] = {buf, buf + size, buf + size + size / 4};
		const int stride[3] = {cfg.width, cfg.width / 2, cfg.width / 2};
		double interval = (double)cfg.fps_d / cfg.fps_n;
		struct h264_output out;
		size_t left, sent = 0;

		if (fread(buf, 1, size * 3 / 2, in) != (size_t)size * 3 / 2)
			break;
		if (start > 0) {
			start--;
			continue;
		}
		for (int i = 0; i < nsteps; i++)
			if (steps[i].frame == n)
				h264_set_rate(enc, steps[i].rate);
		if (!h264_encode(enc, plane, stride, key_every && n % key_every == 0, &out)) {
			fprintf(stderr, "bench_encoder: frame %d: encoder failed\n", n);
			return 1;
		}
		wire[n] = out.pic.wire;
		rate[n] = out.pic.rate;
		total += out.pic.wire;
		allowed += out.pic.rate * interval / 8;
		dev += pow(out.pic.wire * 8 / (out.pic.rate * interval) - 1, 2);
		if (out.size) {
			psnr += out.pic.psnr;
			psnr_min = fmin(psnr_min, out.pic.psnr);
			qp_lo = fmin(qp_lo, out.pic.qp);
			qp_hi = fmax(qp_hi, out.pic.qp);
		} else {
			skipped++;
		}
		if (out.pic.bound > 0) {
			over += out.pic.wire > out.pic.bound;
			over_max = fmax(over_max, out.pic.wire / out.pic.bound);
		}
		if (csv)
			fprintf(csv, "%u,%u,%c,%d,%.2f,%zu,%zu,%u,%.0f,%.0f,%.0f,%.2f\n",
				out.pic.frame, out.pic.gop, out.pic.type, out.pic.qp_base,
				out.pic.qp, out.pic.bytes, out.pic.wire, out.pic.packets,
				out.pic.bound, out.pic.target, out.pic.rate, out.pic.psnr);
		/* Packets leave in proportion to the bytes before them. */
		left = out.pic.wire;
		nal_packets = out.pic.packets;
		for (size_t k = 0; k < nal_packets && left; k++) {
			size_t bytes = left < WIRE_IP_PACKET ? left : WIRE_IP_PACKET;

			now = n * interval + interval * sent / out.pic.wire;
			values[waits++] = 1000 * fmax(0, free_at - now);
			free_at = fmax(free_at, now) + bytes * 8 / out.pic.rate;
			sent += bytes;
			left -= bytes;
		}
		n++;
	}
	printf("{\"rate\": %.0f, \"mode\": \"%s\", \"frames\": %d, \"skipped\": %d, \"use\": "
	       "%.4f, ",
	       steps[0].rate, cfg.mode == H264_MODE_GOP ? "gop" : "gop+trim", n, skipped,
	       total / allowed);
	printf("\"frame_dev\": %.4f, \"over\": %d, \"over_max\": %.4f, \"qp\": [%.0f, %.0f], ",
	       sqrt(dev / n), over, over_max, qp_lo, qp_hi);
	printf("\"psnr_y\": %.2f, \"psnr_y_min\": %.2f, ", psnr / (n - skipped), psnr_min);
	printf("\"queue_ms\": {\"p50\": %.2f, \"p95\": %.2f, \"p99\": %.2f, \"max\": %.2f}, ",
	       quantile(values, waits, 0.5), quantile(values, waits, 0.95),
	       quantile(values, waits, 0.99), quantile(values, waits, 1));
	/* Mean over sliding windows of one second. */
	waits = 0;
	int second = (cfg.fps_n + cfg.fps_d / 2) / cfg.fps_d;
	for (int i = 0; i + second <= n; i++) {
		double w = 0, a = 0;

		for (int k = i; k < i + second; k++) {
			w += wire[k];
			a += rate[k] * cfg.fps_d / cfg.fps_n / 8;
		}
		values[waits++] = fabs(w / a - 1);
	}
	printf("\"second_error\": {\"p50\": %.4f, \"p95\": %.4f, \"max\": %.4f}}\n",
	       quantile(values, waits, 0.5), quantile(values, waits, 0.95),
	       quantile(values, waits, 1));
	h264_close(enc);
	free(buf);
	fclose(in);
	if (csv)
		fclose(csv);
	return over != 0;
}
