// SPDX-License-Identifier: GPL-2.0
/* Which flow paqmestimator takes its packets for, and how its thread is woken. */
#include <gio/gio.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/tests/check.h"
#include "streamer/gst/estimate.h"
#include "streamer/gst/gstpaqmpacer.h"

static GstPaqmEstimator *watched;
static guint written, unlocked, early;

/* In place of the C library's. Whoever wakes the thread holds the lock, so that the descriptor is
 * not closed, and its number another file's, in between.
 */
int eventfd_write(int fd, eventfd_t value)
{
	if (watched && fd == watched->wake) {
		written++;
		if (g_mutex_trylock(&watched->lock)) {
			g_mutex_unlock(&watched->lock);
			unlocked++;
		}
	}
	return write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

/* Nor is it closed as long as others could write to it. */
int close(int fd)
{
	if (watched && fd == watched->wake)
		early++;
	return (int)syscall(SYS_close, fd);
}

TEST(stop)
{
	GstElement *e = gst_object_ref_sink(gst_element_factory_make("paqmestimator", NULL));

	g_object_set(e, "socket", "/nowhere/paqmd", NULL);
	gst_element_set_state(e, GST_STATE_PAUSED);
	watched = (GstPaqmEstimator *)e;
	g_object_set(e, "max-bitrate", 1000000, NULL);
	gst_element_set_state(e, GST_STATE_NULL);
	g_object_set(e, "max-bitrate", 2000000, NULL); /* nobody is there to be woken */
	watched = NULL;
	same("times that it was woken", written, 2);
	same("times without the lock", unlocked, 0);
	same("times that it was closed early", early, 0);
	gst_object_unref(e);
}

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

/* A resolver with another address each time, that answers while the gate is open. */
typedef struct {
	GResolver parent;
	GMutex gate;
	gint asked;
} Rotating;
typedef GResolverClass RotatingClass;
G_DEFINE_TYPE(Rotating, rotating, G_TYPE_RESOLVER)

static GList *rotate(GResolver *resolver, const char *host, GCancellable *stop, GError **error)
{
	Rotating *r = (Rotating *)resolver;
	char address[] = "127.0.0.0";

	(void)host;
	(void)stop;
	(void)error;
	address[8] += (char)(g_atomic_int_add(&r->asked, 1) + 1);
	g_mutex_lock(&r->gate);
	g_mutex_unlock(&r->gate);
	return g_list_append(NULL, g_inet_address_new_from_string(address));
}

static void rotating_class_init(RotatingClass *klass)
{
	klass->lookup_by_name = rotate;
}

static void rotating_init(Rotating *r)
{
	g_mutex_init(&r->gate);
}

#define PATIENCE 20000 /* ms */

/* Who waited for the resolver would wait here for ever. */
TEST(names)
{
	Rotating *resolver = g_object_new(rotating_get_type(), NULL);
	GstElement *sink = gst_object_ref_sink(gst_element_factory_make("udpsink", NULL));
	GstPad *pad = gst_pad_new("src", GST_PAD_SRC), *peer;
	struct route_name *name = NULL;
	g_autofree char *first = NULL;
	struct route r = {0};
	int waits = 0, asked;

	g_resolver_set_default((GResolver *)resolver);
	g_object_set(sink, "host", "several.example", "port", 5004, "async", FALSE, NULL);
	asked = g_atomic_int_get(&resolver->asked); /* by udpsink, with each property */
	peer = gst_element_get_static_pad(sink, "sink");
	gst_pad_link(pad, peer);
	gst_element_set_state(sink, GST_STATE_PAUSED);
	g_mutex_lock(&resolver->gate); /* it hangs */
	CHECK(!route_of_sink(pad, &name, &r));
	CHECK(!route_of_sink(pad, &name, &r));
	g_mutex_unlock(&resolver->gate);
	while (!route_of_sink(pad, &name, &r) && waits++ < PATIENCE)
		g_usleep(1000);
	first = g_strdup(r.destination);
	for (int i = 0; i < 3; i++) {
		route_clear(&r);
		CHECK(route_of_sink(pad, &name, &r) && !g_strcmp0(r.destination, first));
	}
	same("look-ups", g_atomic_int_get(&resolver->asked), asked + 1);
	g_object_set(sink, "port", 5006, NULL); /* udpsink looks it up anew, and so do we */
	route_clear(&r);
	while (!route_of_sink(pad, &name, &r) && waits++ < PATIENCE)
		g_usleep(1000);
	CHECK(r.destination && g_strcmp0(r.destination, first));
	same("port", r.destination_port, 5006);
	route_clear(&r);
	route_name_drop(name);
	gst_element_set_state(sink, GST_STATE_NULL);
	gst_object_unref(peer);
	gst_object_unref(pad);
	gst_object_unref(sink);
	g_object_unref(resolver);
}

int main(int argc, char **argv)
{
	gst_init(&argc, &argv);
	gst_paqm_pacer_register(NULL);
	gst_paqm_estimator_register(NULL);
	return check_run();
}
