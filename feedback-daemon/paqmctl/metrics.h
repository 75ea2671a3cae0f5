/* SPDX-License-Identifier: GPL-2.0 */
/* The answer to "show" as OpenMetrics text, for Prometheus and its like. */
#ifndef PAQMCTL_METRICS_H
#define PAQMCTL_METRICS_H

#include <jansson.h>
#include <stdio.h>

void metrics_print(FILE *out, const json_t *show);

#endif /* PAQMCTL_METRICS_H */
