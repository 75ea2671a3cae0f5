// SPDX-License-Identifier: GPL-2.0
/* Which flow paqmestimator takes its packets for. */
#include "core/tests/check.h"
#include "streamer/gst/route.h"

/* As webrtcbin names a candidate, remote and local alike. */
static void add_candidate(GstStructure *stats, const char *id, const char *address, guint port,
			  const char *type, const char *protocol)
{
	GstStructure *s = gst_structure_new("ice-candidate", "id", G_TYPE_STRING, id, "address",
					    G_TYPE_STRING, address, "port", G_TYPE_UINT, port,
					    "candidate-type", G_TYPE_STRING, type, "protocol",
					    G_TYPE_STRING, protocol, NULL);

	gst_structure_set(stats, id, GST_TYPE_STRUCTURE, s, NULL);
	gst_structure_free(s);
}

static void add_ids(GstStructure *stats, const char *kind, const char *id, const char *key,
		    const char *value, const char *key2, const char *value2)
{
	GstStructure *s = gst_structure_new(kind, "id", G_TYPE_STRING, id, key, G_TYPE_STRING,
					    value, key2, G_TYPE_STRING, value2, NULL);

	gst_structure_set(stats, id, GST_TYPE_STRUCTURE, s, NULL);
	gst_structure_free(s);
}

/* The flow of a pair whose own end is a candidate of this type, as the peer sees it. */
static gboolean of_pair(const char *type, const char *address, const char *protocol,
			const char *peer, struct route *r)
{
	GstStructure *stats = gst_structure_new_empty("stats");
	gboolean found;

	add_ids(stats, "transport", "T", "selected-candidate-pair-id", "P", "dtls-state",
		"connected");
	add_ids(stats, "candidate-pair", "P", "local-candidate-id", "L", "remote-candidate-id",
		"R");
	add_candidate(stats, "L", address, 40000, type, protocol);
	add_candidate(stats, "R", peer, 50000, "prflx", "udp");
	found = route_of_stats(stats, r);
	gst_structure_free(stats);
	return found;
}

/* Routers inside a NAT quote packets as the host sends them. */
TEST(pairs)
{
	static const struct {
		const char *type, *address, *protocol, *peer;
		const char *source; /* NULL: any */
		gboolean followed;
	} pair[] = {
		{"host", "10.0.0.2", "udp", "203.0.113.2", "10.0.0.2", TRUE},
		{"host", "2001:db8::2", "udp", "2001:db8::7", "2001:db8::2", TRUE},
		{"prflx", "203.0.113.1", "udp", "203.0.113.2", NULL, TRUE},
		{"srflx", "203.0.113.1", "udp", "203.0.113.2", NULL, TRUE},
		{"relay", "203.0.113.9", "udp", "203.0.113.2", NULL, FALSE},
		{"host", "10.0.0.2", "tcp", "203.0.113.2", NULL, FALSE},
		{"host", "one.local", "udp", "203.0.113.2", NULL, FALSE},
	};

	for (gsize i = 0; i < ROWS(pair); i++) {
		struct route r;
		gboolean found =
			of_pair(pair[i].type, pair[i].address, pair[i].protocol, pair[i].peer, &r);

		check(found == pair[i].followed, pair[i].type, found);
		check(!g_strcmp0(r.source, pair[i].source), pair[i].type, i);
		if (found) {
			check(!g_strcmp0(r.destination, pair[i].peer), pair[i].type, i);
			same(pair[i].type, r.source_port, 40000);
			same(pair[i].type, r.destination_port, 50000);
		} else {
			check(!r.destination, pair[i].type, i);
		}
		route_clear(&r);
	}
}

int main(int argc, char **argv)
{
	gst_init(&argc, &argv);
	return check_run();
}
