/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Statistics of a qdisc's classes, each in a struct of the same kind, as a table or as JSON. One
 * list of rows describes the fields for both.
 */
#ifndef PAQM_TC_CLASS_TABLE_H
#define PAQM_TC_CLASS_TABLE_H

#include <stddef.h>
#include <stdio.h>

enum cell {
	CELL_U32,
	CELL_U64,
	CELL_PACKETS,	/* Q24 */
	CELL_THRESHOLD, /* the same, all ones: none */
	CELL_MEAN,	/* ns of all packets sent */
	CELL_P50,	/* of a histogram of core/paqm_hist.h */
	CELL_P99,
};

struct class_row {
	const char *name; /* in text */
	const char *key;  /* in JSON */
	unsigned short offset;
	unsigned char cell;
};

#define CLASS_ROW(type, cell_, member_, name_, key_)                                               \
	{                                                                                          \
		.name = (name_), .key = (key_), .offset = offsetof(type, member_),                 \
		.cell = CELL_##cell_                                                               \
	}

/**
 * struct class_table - what there is
 * @rows: fields
 * @n_rows: their number
 * @names: of the classes, which follow each other
 * @n_classes: their number
 * @size: of a class
 * @sent: offset of its count of packets
 * @hist: and of its histogram
 */
struct class_table {
	const struct class_row *rows;
	size_t n_rows;
	const char *const *names;
	size_t n_classes;
	size_t size, sent, hist;
};

/* The classes at @first; in JSON an object each, with the histogram. */
void class_table_json(const struct class_table *t, const void *first);
void class_table_text(FILE *f, const struct class_table *t, const void *first);

#endif /* PAQM_TC_CLASS_TABLE_H */
