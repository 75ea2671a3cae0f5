// SPDX-License-Identifier: GPL-2.0
/*
 * OpenMetrics 1.0 text; see metrics.h. Families are fixed; a label is a reason, a
 * flow, a router or an interface.
 */
#include "feedback-daemon/paqmctl/metrics.h"

#include <stdbool.h>
#include <string.h>

enum type { GAUGE, COUNTER };

/* A value of an array's elements: one sample for each. */
struct family {
	const char *name, *help;
	enum type type;
	const char *key; /* in the JSON object */
	double scale;
};

static void head(FILE *out, const struct family *f)
{
	fprintf(out, "# TYPE %s %s\n# HELP %s %s\n", f->name,
		f->type == COUNTER ? "counter" : "gauge", f->name, f->help);
}

static void label(FILE *out, const char *name, const char *value, bool first)
{
	fprintf(out, "%s%s=\"", first ? "{" : ",", name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
	fputc('"', out);
}

static double value_of(const json_t *o, const struct family *f)
{
	const json_t *v = json_object_get(o, f->key);

	return (json_is_true(v) ? 1 : json_number_value(v)) * f->scale;
}

static void value(FILE *out, double v)
{
	fprintf(out, " %.15g\n", v);
}

static void sample(FILE *out, const struct family *f)
{
	fprintf(out, "%s%s", f->name, f->type == COUNTER ? "_total" : "");
}

/* Families of one object, without labels. */
static void scalars(FILE *out, const json_t *o, const struct family *f, size_t n)
{
	for (; n; n--, f++) {
		head(out, f);
		sample(out, f);
		value(out, value_of(o, f));
	}
}

/* Families of the elements of an array; labels are strings of the elements. */
static void vectors(FILE *out, const json_t *array, const char *const *labels,
		    const char *const *keys, const struct family *f, size_t n)
{
	size_t i, l;

	for (; n; n--, f++) {
		head(out, f);
		for (i = 0; i < json_array_size(array); i++) {
			const json_t *o = json_array_get(array, i);

			sample(out, f);
			for (l = 0; labels[l]; l++)
				label(out, labels[l],
				      json_string_value(json_object_get(o, keys[l])), l == 0);
			fputc('}', out);
			value(out, value_of(o, f));
		}
	}
}

/* A family of counters, one for each reason. */
static void reasons(FILE *out, const json_t *stats, const struct family *f)
{
	const char *reason;
	json_t *n;

	head(out, f);
	json_object_foreach(json_object_get(stats, f->key), reason, n)
	{
		sample(out, f);
		label(out, "reason", reason, true);
		fputc('}', out);
		value(out, json_number_value(n));
	}
}

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static void statistics(FILE *out, json_t *stats)
{
	static const struct family plain[] = {
		{"paqmd_uptime_seconds", "Time since the start of paqmd.", GAUGE, "uptime_ms",
		 1e-3},
		{"paqmd_clients", "Connected media senders.", GAUGE, "clients", 1},
		{"paqmd_media_packets", "Sent packets that were remembered.", COUNTER,
		 "media_packets", 1},
		{"paqmd_media_ignored", "Sent packets that can prove nothing.", COUNTER,
		 "media_ignored", 1},
		{"paqmd_media_others",
		 "Packets of flows with an open source address that are not from their user's "
		 "socket.",
		 COUNTER, "media_others", 1},
		{"paqmd_messages_accepted", "Messages accepted.", COUNTER, "accepted", 1},
		{"paqmd_bad_records", "Clients dropped for malformed records.", COUNTER,
		 "bad_records", 1},
		{"paqmd_peers_refused", "Connections from users without permission.", COUNTER,
		 "peers_refused", 1},
		{"paqmd_link_foreign", "Interface notifications not from the kernel.", COUNTER,
		 "link_foreign", 1},
		{"paqmd_digests", "Digests that fit into memory.", GAUGE, "digests", 1},
		{"paqmd_accept_failed", "Connections not accepted for lack of files or memory.",
		 COUNTER, "accept_failed", 1},
	};
	static const struct family by_reason[] = {
		{"paqmd_messages_refused", "Messages refused, by reason.", COUNTER, "refused", 1},
		{"paqmd_flows_refused", "Flow registrations refused, by reason.", COUNTER,
		 "flows_refused", 1},
		{"paqmd_clients_refused", "Media senders refused for lack of room, by reason.",
		 COUNTER, "clients_refused", 1},
		{"paqmd_controls_refused", "Control clients refused for lack of room, by reason.",
		 COUNTER, "controls_refused", 1},
		{"paqmd_digests_forgotten", "Digests forgotten too early, by reason.", COUNTER,
		 "digests_forgotten", 1},
	};
	static const struct family iface[] = {
		{"paqmd_interface_up", "Whether the interface is captured.", GAUGE, "up", 1},
		{"paqmd_interface_packets", "Packets seen on the interface.", COUNTER, "received",
		 1},
	};
	static const struct family capture[] = {
		{"paqmd_capture_packets", "Packets that passed the filter.", COUNTER, "received",
		 1},
		{"paqmd_capture_dropped", "Packets dropped because the ring was full.", COUNTER,
		 "dropped", 1},
	};
	static const char *const label_capture[] = {"of", NULL}, *const of[] = {"of"};
	static const char *const label_iface[] = {"interface", NULL}, *const key[] = {"name"};
	size_t i;

	scalars(out, stats, plain, LENGTH(plain));
	for (i = 0; i < LENGTH(by_reason); i++)
		reasons(out, stats, &by_reason[i]);
	vectors(out, json_object_get(stats, "interfaces"), label_iface, key, iface, LENGTH(iface));
	vectors(out, json_object_get(stats, "captures"), label_capture, of, capture,
		LENGTH(capture));
}

void metrics_print(FILE *out, const json_t *show)
{
	static const struct family router[] = {
		{"paqmd_router_rate_bps", "Absolute rate of its newest message.", GAUGE, "erf_bps",
		 1},
		{"paqmd_router_queue_delay_seconds", "Delay of its media queue.", GAUGE,
		 "qdelay_ms", 1e-3},
		{"paqmd_router_utilisation_ratio", "Utilisation of its link.", GAUGE, "utilisation",
		 1},
		{"paqmd_router_age_seconds", "Age of its newest message.", GAUGE, "age_ms", 1e-3},
		{"paqmd_router_messages_accepted", "Messages accepted.", COUNTER, "accepted", 1},
		{"paqmd_router_messages_refused", "Messages proven, but stale or too many.",
		 COUNTER, "refused", 1},
	};
	static const struct family flow[] = {
		{"paqmd_flow_rate_bps", "What the flow may send; 0 without advice.", GAUGE,
		 "rate_bps", 1},
		{"paqmd_flow_floor_bps", "Registered floor.", GAUGE, "floor_bps", 1},
		{"paqmd_flow_ceiling_bps", "Registered ceiling.", GAUGE, "ceil_bps", 1},
		{"paqmd_flow_packets", "Sent packets that were remembered.", COUNTER, "packets", 1},
		{"paqmd_flow_messages_accepted", "Messages accepted.", COUNTER, "accepted", 1},
		{"paqmd_flow_messages_refused", "Messages refused.", COUNTER, "refused", 1},
	};
	static const char *const label_router[] = {"address", "router_id", NULL};
	static const char *const label_flow[] = {"flow", NULL};

	statistics(out, json_object_get(show, "stats"));
	vectors(out, json_object_get(show, "routers"), label_router, label_router, router,
		LENGTH(router));
	vectors(out, json_object_get(show, "flows"), label_flow, label_flow, flow, LENGTH(flow));
	fputs("# EOF\n", out);
}
