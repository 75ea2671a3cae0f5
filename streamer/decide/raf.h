/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RAF (P. Antoniou and others, ADAVIDEO D3.2, University of Cyprus 2007): the receiver chooses a
 * format of pictures for the bandwidth that it measures: which layer, size, bits per pixel,
 * pictures per second. The report has no formulas; the rules here are recovered from its tables,
 * and agree with all of their 80 rows. What the tables do not show is marked so.
 *
 * Integers only, and pure.
 */
#ifndef PAQM_RAF_H
#define PAQM_RAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAF_APP 0x52414630U /* "RAF0"; message and name are a choice of ours */
#define RAF_SUBTYPE 1
#define RAF_LEN 20 /* bytes behind the name */
#define RAF_LAYERS 5
#define RAF_AVAIL 2048000 /* bit/s, before anything has been measured */
#define RAF_FPS_MAX 30

/* Total rate with so many layers, bit/s. */
extern const uint32_t raf_ladder[RAF_LAYERS];

/* What users wish. */
struct raf_user {
	int width;
	int wide, high; /* aspect ratio */
	int millibits;	/* per pixel, 1/1000 */
	int fps;
};

struct raf_choice {
	int layer;
	int width, height;
	int millibits, fps;
};

/* Bit/s of a format, rounded up. */
uint32_t raf_rate(const struct raf_choice *c);
/* The most that a layer carries: whole bytes per picture at the wished picture rate, bit/s. */
uint32_t raf_cap(int layer, int fps);
/**
 * raf_choose() - the format for what is measured
 * @avail: bit/s
 * @lost, @received: pictures since the last choice
 * @layers: how many there are, 1 to RAF_LAYERS
 */
struct raf_choice raf_choose(uint32_t avail, uint32_t lost, uint32_t received, int layers,
			     const struct raf_user *user);

/* Estimated opinion, in 1/1000 of 100: as printed, of quality and fluency only. */
uint32_t raf_opinion(const struct raf_choice *c);

/* What the receiver asks for. */
struct raf_request {
	struct raf_choice choice;
	uint32_t media; /* SSRC of the stream */
	uint32_t avail;
	uint16_t lost, received;
};

void raf_write(const struct raf_request *q, uint8_t data[RAF_LEN]);
/**
 * raf_read() - data of an APP packet with that name and subtype
 * @layers: how many there are
 * Return: false if it is malformed, or asks for more than its layer carries.
 */
bool raf_read(const uint8_t *data, size_t len, int layers, struct raf_request *q);

#endif /* PAQM_RAF_H */
