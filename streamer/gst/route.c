// SPDX-License-Identifier: GPL-2.0
/* The flow of an element's packets; see route.h. */
#include "streamer/gst/route.h"

#include <gio/gio.h>
#include <string.h>

#include "streamer/rtp/wire.h"

#define DEPTH 64 /* elements between here and a sink; pipelines may have loops */
#define AGAIN (2 * G_USEC_PER_SEC)

void route_clear(struct route *r)
{
	g_free(r->source);
	g_free(r->destination);
	memset(r, 0, sizeof(*r));
}

gboolean route_equal(const struct route *a, const struct route *b)
{
	return !g_strcmp0(a->source, b->source) && !g_strcmp0(a->destination, b->destination) &&
	       a->source_port == b->source_port && a->destination_port == b->destination_port;
}

static gboolean is_of(GstElement *element, const char *factory)
{
	GstElementFactory *f = gst_element_get_factory(element);

	return f && !strcmp(GST_OBJECT_NAME(f), factory);
}

GstElement *route_webrtcbin(GstElement *element)
{
	GstObject *o = gst_object_get_parent(GST_OBJECT(element));

	while (o && !is_of(GST_ELEMENT(o), "webrtcbin")) {
		GstObject *up = gst_object_get_parent(o);

		gst_object_unref(o);
		o = up;
	}
	return o ? GST_ELEMENT(o) : NULL;
}

/* The structure of the answer that has this id, or is the first of this kind. Borrowed. Kinds are
 * not looked at where there is an id: GStreamer 1.22 calls local candidates remote and vice versa.
 */
static const GstStructure *entry(const GstStructure *stats, const char *kind, const char *id)
{
	for (gint i = 0; (kind || id) && i < gst_structure_n_fields(stats); i++) {
		const GValue *v =
			gst_structure_get_value(stats, gst_structure_nth_field_name(stats, i));
		const GstStructure *s =
			GST_VALUE_HOLDS_STRUCTURE(v) ? gst_value_get_structure(v) : NULL;

		if (s && (id ? !g_strcmp0(gst_structure_get_string(s, "id"), id)
			     : gst_structure_has_name(s, kind)))
			return s;
	}
	return NULL;
}

static gboolean take(const GstStructure *candidate, char **address, guint16 *port)
{
	const char *text = candidate ? gst_structure_get_string(candidate, "address") : NULL;
	const char *protocol = candidate ? gst_structure_get_string(candidate, "protocol") : NULL;
	guint n = 0;

	if (!text || !g_hostname_is_ip_address(text) || g_strcmp0(protocol, "udp") ||
	    !gst_structure_get_uint(candidate, "port", &n) || !n || n > G_MAXUINT16)
		return FALSE;
	*address = g_strdup(text);
	*port = (guint16)n;
	return TRUE;
}

/* What the peer sees behind a NAT is a candidate, too, but routers inside quote packets as the host
 * sends them. webrtcbin tells no address below such a candidate: any will do, and the port is that
 * of the host if the NAT keeps ports. What a relay sends comes from no socket of this host.
 */
static gboolean take_source(const GstStructure *local, struct route *r)
{
	const char *type = local ? gst_structure_get_string(local, "candidate-type") : NULL;

	if (!g_strcmp0(type, "relay") || !take(local, &r->source, &r->source_port))
		return FALSE;
	if (g_strcmp0(type, "host"))
		g_clear_pointer(&r->source, g_free);
	return TRUE;
}

gboolean route_of_stats(const GstStructure *stats, struct route *r)
{
	const GstStructure *transport, *pair;
	const char *id;

	memset(r, 0, sizeof(*r));
	transport = entry(stats, "transport", NULL);
	id = transport ? gst_structure_get_string(transport, "selected-candidate-pair-id") : NULL;
	pair = id ? entry(stats, NULL, id) : NULL;
	if (!pair)
		return FALSE;
	if (!take_source(entry(stats, NULL, gst_structure_get_string(pair, "local-candidate-id")),
			 r) ||
	    !take(entry(stats, NULL, gst_structure_get_string(pair, "remote-candidate-id")),
		  &r->destination, &r->destination_port)) {
		route_clear(r);
		return FALSE;
	}
	r->below = wire_ip_udp(strchr(r->destination, ':')) + WIRE_SRTP;
	return TRUE;
}

/* The sink of UDP that a pad leads to, with a reference. */
static GstElement *follow(GstPad *pad, guint depth)
{
	GstPad *peer = depth ? gst_pad_get_peer(pad) : NULL;
	GstElement *found = NULL, *parent;
	GValue item = G_VALUE_INIT;
	GstIterator *links;

	if (!peer)
		return NULL;
	parent = gst_pad_get_parent_element(peer);
	if (parent && is_of(parent, "udpsink")) {
		gst_object_unref(peer);
		return parent;
	}
	gst_clear_object(&parent);
	/* Of ghost pads and their insides, too, this is the other side. */
	links = gst_pad_iterate_internal_links(peer);
	while (links && !found && gst_iterator_next(links, &item) == GST_ITERATOR_OK) {
		found = follow(g_value_get_object(&item), depth - 1);
		g_value_reset(&item);
	}
	g_value_unset(&item);
	if (links)
		gst_iterator_free(links);
	gst_object_unref(peer);
	return found;
}

/* A name that a udpsink sends to. Its look-up, which may take long, has a thread and a reference.
 */
struct route_name {
	GObject *sink; /* only compared, by who looks */
	char *host;
	gint port;
	gint64 again; /* when a failed look-up is repeated */
	GCancellable *stop;
	GMutex lock; /* for what follows */
	gboolean busy;
	GInetAddress *address;
};

static void name_clear(gpointer data)
{
	struct route_name *n = data;

	g_clear_object(&n->address);
	g_object_unref(n->stop);
	g_mutex_clear(&n->lock);
	g_free(n->host);
}

void route_name_drop(struct route_name *n)
{
	if (!n)
		return;
	g_cancellable_cancel(n->stop);
	g_atomic_rc_box_release_full(n, name_clear);
}

static gpointer look_up(gpointer data)
{
	struct route_name *n = data;
	GResolver *resolver = g_resolver_get_default();
	GList *all = g_resolver_lookup_by_name(resolver, n->host, n->stop, NULL);

	g_mutex_lock(&n->lock);
	n->address = all ? g_object_ref(all->data) : NULL;
	n->busy = FALSE;
	g_mutex_unlock(&n->lock);
	g_resolver_free_addresses(all);
	g_object_unref(resolver);
	g_atomic_rc_box_release_full(n, name_clear);
	return NULL;
}

/* The address of a host, NULL if it is not known yet. As udpsink does, a name is looked up once:
 * one with several addresses would be another flow each time.
 */
static GInetAddress *address_of(GstElement *sink, const char *host, gint port,
				struct route_name **name)
{
	GInetAddress *found = g_inet_address_new_from_string(host);
	gint64 now = g_get_monotonic_time();
	struct route_name *n = *name;
	gboolean busy;

	if (found)
		return found;
	if (!n || n->sink != G_OBJECT(sink) || n->port != port || strcmp(n->host, host)) {
		route_name_drop(n);
		n = *name = g_atomic_rc_box_new0(struct route_name);
		n->sink = G_OBJECT(sink);
		n->host = g_strdup(host);
		n->port = port;
		n->stop = g_cancellable_new();
		g_mutex_init(&n->lock);
	}
	g_mutex_lock(&n->lock);
	found = n->address ? g_object_ref(n->address) : NULL;
	busy = n->busy;
	n->busy = busy || (!found && now >= n->again);
	g_mutex_unlock(&n->lock);
	if (!found && !busy && now >= n->again) {
		n->again = now + AGAIN;
		g_thread_unref(g_thread_new("paqm-resolver", look_up, g_atomic_rc_box_acquire(n)));
	}
	return found;
}

static gboolean take_socket(GSocket *socket, struct route *r)
{
	GSocketAddress *local = g_socket_get_local_address(socket, NULL);
	GInetAddress *address;

	if (!local)
		return FALSE;
	address = g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(local));
	r->source_port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(local));
	if (!g_inet_address_get_is_any(address))
		r->source = g_inet_address_to_string(address);
	g_object_unref(local);
	return r->source_port != 0;
}

gboolean route_of_sink(GstPad *pad, struct route_name **name, struct route *r)
{
	GstElement *sink = follow(pad, DEPTH);
	GInetAddress *to = NULL;
	GSocket *socket = NULL;
	char *host = NULL;
	gint port = 0;

	memset(r, 0, sizeof(*r));
	if (!sink)
		return FALSE;
	g_object_get(sink, "host", &host, "port", &port, NULL);
	to = host ? address_of(sink, host, port, name) : NULL;
	if (to) {
		gboolean six = g_inet_address_get_family(to) == G_SOCKET_FAMILY_IPV6;

		g_object_get(sink, six ? "used-socket-v6" : "used-socket", &socket, NULL);
		r->destination = g_inet_address_to_string(to);
		r->destination_port = (guint16)port;
		r->below = wire_ip_udp(six);
	}
	if (!socket || !take_socket(socket, r))
		route_clear(r);
	g_clear_object(&socket);
	g_clear_object(&to);
	g_free(host);
	gst_object_unref(sink);
	return r->destination != NULL;
}
