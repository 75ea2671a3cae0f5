/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What repair of lost packets (retransmission, forward error correction) costs, and who pays: the
 * pictures, so that all together keep to the rate that is allowed. Bytes that repair takes are
 * owed, and paid back within about REPAIR_SPREAD seconds.
 *
 * Pure functions: no clock, no I/O. Rates are bit/s at IP level.
 */
#ifndef PAQM_REPAIRBUDGET_H
#define PAQM_REPAIRBUDGET_H

#define REPAIR_SPREAD 0.2
#define REPAIR_LEAST 0.5  /* share of the rate that pictures have in any case */
#define REPAIR_SHARE 0.25 /* share of the rate that retransmission may take for a while */
#define FEC_MOST 100	  /* per cent of packets that forward error correction may add */

/**
 * struct repair_budget
 * @planned: share of the rate that forward error correction takes, 0 to 1
 * @owed: bytes that pictures have to make good
 */
struct repair_budget {
	double planned;
	double owed;
};

/**
 * repair_begin() - a budget at its start
 * @percent: of packets that forward error correction adds
 * @rate: that is allowed
 */
void repair_begin(struct repair_budget *b, double percent, double rate);

/* What is left of the rate for pictures. */
double repair_left(const struct repair_budget *b, double rate);

/* Bytes that may be sent again now. */
double repair_room(const struct repair_budget *b, double rate);

/* So many bytes of repair have gone out in the last @dt seconds. */
void repair_spent(struct repair_budget *b, double rate, double bytes, double dt);

#endif /* PAQM_REPAIRBUDGET_H */
