// SPDX-License-Identifier: GPL-2.0
/*
 * A room between a loudspeaker and a microphone: a filter from standard input to standard output,
 * samples of 16 bit, one channel, 48,000 a second. What is played is heard DELAY ms later, WEAKER
 *dB weaker, with 60 ms of reflections (the same in every run), and a little noise. In ROOM.raw it
 *says, per sample and in 16 bit each, what came from the loudspeaker and what the person in the
 *room said: the samples of NEAR.raw, again and again, from START s after the loudspeaker's first
 *sound on.
 *
 *	room DELAY WEAKER START NEAR.raw ROOM.raw
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE 48000
#define PIECE (RATE / 100)
#define TAPS (RATE * 60 / 1000)
#define DELAY_MAX RATE /* 1 s */
#define REVERB_S 0.25  /* until reflections are 60 dB weaker */
#define DIRECT 0.5     /* of the energy that comes, what comes without reflection */
#define NOISE 8.0      /* amplitude: 72 dB below the loudest */
#define SOUND 50       /* what is less is silence */

static float taps[TAPS];
static float past[TAPS + PIECE];
static float late[DELAY_MAX + PIECE];
static uint32_t dice = 1;

/* -1 to 1 */
static double throw_dice(void)
{
	dice = dice * 1664525u + 1013904223u;
	return dice / 2147483648.0 - 1;
}

static void make_taps(double weaker)
{
	double gain = pow(10, -weaker / 20), energy = 0;

	for (int i = 1; i < TAPS; i++) {
		taps[i] = (float)(throw_dice() * pow(10, -3.0 * i / RATE / REVERB_S));
		energy += (double)taps[i] * taps[i];
	}
	for (int i = 1; i < TAPS; i++)
		taps[i] *= (float)(gain * sqrt((1 - DIRECT) / energy));
	taps[0] = (float)(gain * sqrt(DIRECT));
}

static int16_t clip(double v)
{
	return (int16_t)lrint(fmax(-32768, fmin(32767, v)));
}

/* The walls' answer to one sample: the newest of @from is the last. */
static float reflect(const float *from)
{
	float sum = 0;

	for (int i = 0; i < TAPS; i++)
		sum += taps[i] * from[-i];
	return sum;
}

static int16_t *read_all(const char *path, size_t *count)
{
	FILE *f = fopen(path, "rb");
	int16_t *samples = NULL;
	long bytes;

	if (f && !fseek(f, 0, SEEK_END) && (bytes = ftell(f)) >= 2 && !fseek(f, 0, SEEK_SET)) {
		*count = (size_t)bytes / 2;
		samples = malloc(*count * 2);
		if (samples && fread(samples, 2, *count, f) != *count) {
			free(samples);
			samples = NULL;
		}
	}
	if (f)
		fclose(f);
	return samples;
}

int main(int argc, char **argv)
{
	size_t delay, count = 0, start, said = 0, begun = 0;
	int16_t in[PIECE], out[PIECE], both[2 * PIECE];
	int16_t *near;
	FILE *log;

	if (argc != 6 || !(near = read_all(argv[4], &count)) || !(log = fopen(argv[5], "wb"))) {
		fprintf(stderr, "usage: room DELAY WEAKER START NEAR.raw ROOM.raw\n");
		return 2;
	}
	delay = (size_t)(atof(argv[1]) * RATE / 1000);
	start = (size_t)(atof(argv[3]) * RATE);
	if (delay > DELAY_MAX) {
		fprintf(stderr, "room: a delay of %s ms is too long\n", argv[1]);
		return 2;
	}
	make_taps(atof(argv[2]));
	while (fread(in, 2, PIECE, stdin) == PIECE) {
		memmove(past, past + PIECE, TAPS * sizeof(*past));
		memmove(late, late + PIECE, DELAY_MAX * sizeof(*late));
		for (int i = 0; i < PIECE; i++) {
			double echo, person = 0;

			past[TAPS + i] = in[i];
			late[DELAY_MAX + i] = reflect(past + TAPS + i);
			echo = late[DELAY_MAX + i - delay];
			begun += begun || abs(in[i]) > SOUND;
			if (begun > start)
				person = near[said++ % count];
			both[2 * i] = clip(echo);
			both[2 * i + 1] = clip(person);
			out[i] = clip(echo + person + NOISE * throw_dice());
		}
		if (fwrite(out, 2, PIECE, stdout) != PIECE || fflush(stdout) ||
		    fwrite(both, 4, PIECE, log) != PIECE || fflush(log))
			break;
	}
	return fclose(log) != 0;
}
