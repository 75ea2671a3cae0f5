// SPDX-License-Identifier: GPL-2.0
/* Statistics of classes; see class_table.h. */
#include <string.h>

#include "core/paqm_hist.h"
#include "userspace/tc-paqm/class_table.h"
#include "userspace/tc-paqm/tc_plugin.h"
#include "userspace/tc-paqm/show.h"

static __u64 wide(const void *class, size_t offset)
{
	__u64 value;

	memcpy(&value, (const char *)class + offset, sizeof(value));
	return value;
}

static const void *class_at(const struct class_table *t, const void *first, size_t c)
{
	return (const char *)first + c * t->size;
}

static __u64 quantile_ns(const struct class_table *t, const void *class, unsigned char cell)
{
	/* the core's own type of 64 bits is another one on some machines, of the same size */
	return paqm_hist_quantile((const paqm_u64 *)((const char *)class + t->hist),
				  cell == CELL_P50 ? 500 : 990);
}

static double mean_ns(const struct class_table *t, const struct class_row *row, const void *class)
{
	__u64 sent = wide(class, t->sent);

	return sent ? (double)wide(class, row->offset) / sent : 0;
}

static __u64 cell_value(const struct class_row *row, const void *class)
{
	__u32 word;

	if (row->cell != CELL_U32)
		return wide(class, row->offset);
	memcpy(&word, (const char *)class + row->offset, sizeof(word));
	return word;
}

static void json_cell(const struct class_table *t, const struct class_row *row, const void *class)
{
	__u64 value = cell_value(row, class);

	switch (row->cell) {
	case CELL_MEAN:
		json_float(row->key, mean_ns(t, row, class) / 1000);
		break;
	case CELL_P50:
	case CELL_P99:
		json_float(row->key, quantile_ns(t, class, row->cell) / 1000.0);
		break;
	case CELL_THRESHOLD:
		if (value == ~0ULL) {
			print_color_null(PRINT_JSON, COLOR_IFNAME, row->key, NULL, NULL);
			break;
		}
		json_float(row->key, (double)value / Q24_ONE);
		break;
	case CELL_PACKETS:
		json_float(row->key, (double)value / Q24_ONE);
		break;
	default:
		json_u64(row->key, value);
	}
}

static const char *text_cell(const struct class_table *t, const struct class_row *row,
			     const void *class, char *buf)
{
	__u64 value = cell_value(row, class);

	switch (row->cell) {
	case CELL_MEAN:
		return measured_time(mean_ns(t, row, class), buf);
	case CELL_P50:
	case CELL_P99:
		return measured_time(quantile_ns(t, class, row->cell), buf);
	case CELL_THRESHOLD:
		if (value == ~0ULL)
			return "none";
		/* fall through */
	case CELL_PACKETS:
		snprintf(buf, TEXT_SIZE, "%.4g", (double)value / Q24_ONE);
		return buf;
	}
	snprintf(buf, TEXT_SIZE, "%llu", (unsigned long long)value);
	return buf;
}

void class_table_json(const struct class_table *t, const void *first)
{
	size_t i, c;

	for (c = 0; c < t->n_classes; c++) {
		const void *class = class_at(t, first, c);

		open_json_object(t->names[c]);
		for (i = 0; i < t->n_rows; i++)
			json_cell(t, &t->rows[i], class);
		open_json_array(PRINT_JSON, "sojourn_hist");
		for (i = 0; i < PAQM_HIST_SIZE; i++)
			json_u64(NULL, wide(class, t->hist + i * sizeof(__u64)));
		close_json_array(PRINT_JSON, NULL);
		close_json_object();
	}
}

void class_table_text(FILE *f, const struct class_table *t, const void *first)
{
	char buf[TEXT_SIZE];
	size_t i, c;

	fprintf(f, "  %-12s", "");
	for (c = 0; c < t->n_classes; c++)
		fprintf(f, " %14s", t->names[c]);
	print_nl();
	for (i = 0; i < t->n_rows; i++) {
		fprintf(f, "  %-12s", t->rows[i].name);
		for (c = 0; c < t->n_classes; c++)
			fprintf(f, " %14s", text_cell(t, &t->rows[i], class_at(t, first, c), buf));
		print_nl();
	}
}
