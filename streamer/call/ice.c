// SPDX-License-Identifier: GPL-2.0
/*
 * ICE with libnice; see ice.h. Its sockets are read in a thread of our own, and packets that are
 * not ICE's are handed on from there. The lock is never held while libnice is called, which calls
 * us back.
 */
#include "streamer/call/ice.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <nice/agent.h>
#include <string.h>

#include "streamer/call/candidates.h"
#include "streamer/options.h"

#define ICE_CLOSE_MS 500
#define QUEUED_BYTES (1 << 20) /* as udpsrc asks of its socket */

struct stream {
	struct ice *ice;
	enum call_media media;
	guint id;
	/* by the lock: */
	gboolean gathered, let_in;
	NiceComponentState state;
	NiceCandidate *local, *remote; /* of the path */
	GstElement *src;
	guint64 failed; /* packets that could not be sent */
};

struct ice {
	NiceAgent *agent;
	GMainContext *context;
	GMainLoop *loop;
	GThread *thread;
	GInetSocketAddress *turn;
	GMutex lock;
	GCond changed;
	struct stream stream[CALL_MEDIA];
	ice_moved_fn moved;
	gpointer data;
	guint idle; /* tells of paths */
	guint told; /* bits of streams that have another */
	gboolean closed;
};

static struct stream *stream_of(struct ice *ice, guint id)
{
	for (int i = 0; i < CALL_MEDIA; i++)
		if (ice->stream[i].id == id)
			return &ice->stream[i];
	return NULL;
}

/* What libnice tells, in its thread or in that of who has called it */

static void on_gathered(NiceAgent *agent, guint id, gpointer data)
{
	struct ice *ice = data;
	struct stream *s;

	(void)agent;
	g_mutex_lock(&ice->lock);
	s = stream_of(ice, id);
	if (s)
		s->gathered = TRUE;
	g_cond_broadcast(&ice->changed);
	g_mutex_unlock(&ice->lock);
}

static void on_state(NiceAgent *agent, guint id, guint component, guint state, gpointer data)
{
	struct ice *ice = data;
	struct stream *s;

	(void)agent;
	(void)component;
	g_mutex_lock(&ice->lock);
	s = stream_of(ice, id);
	if (s)
		s->state = (NiceComponentState)state;
	g_cond_broadcast(&ice->changed);
	g_mutex_unlock(&ice->lock);
}

static gboolean tell_moved(gpointer data)
{
	struct ice *ice = data;
	guint told;

	g_mutex_lock(&ice->lock);
	told = ice->told;
	ice->told = ice->idle = 0;
	g_mutex_unlock(&ice->lock);
	for (int i = 0; i < CALL_MEDIA; i++)
		if (told & 1U << i)
			ice->moved(i, ice->data);
	return G_SOURCE_REMOVE;
}

static void on_pair(NiceAgent *agent, guint id, guint component, NiceCandidate *local,
		    NiceCandidate *remote, gpointer data)
{
	struct ice *ice = data;
	struct stream *s;

	(void)agent;
	(void)component;
	g_mutex_lock(&ice->lock);
	s = stream_of(ice, id);
	if (s) {
		g_clear_pointer(&s->local, nice_candidate_free);
		g_clear_pointer(&s->remote, nice_candidate_free);
		s->local = nice_candidate_copy(local);
		s->remote = nice_candidate_copy(remote);
		ice->told |= 1U << s->media;
		if (ice->moved && !ice->idle)
			ice->idle = g_idle_add(tell_moved, ice);
	}
	g_cond_broadcast(&ice->changed);
	g_mutex_unlock(&ice->lock);
}

/* A packet that is not ICE's own; from whom is for the gate behind to judge. */
static void on_packet(NiceAgent *agent, guint id, guint component, guint len, char *bytes,
		      gpointer data)
{
	struct stream *s = data;
	GstElement *src = NULL;
	GstClockTime now;
	GstClock *clock;
	GstBuffer *buf;

	(void)agent;
	(void)id;
	(void)component;
	g_mutex_lock(&s->ice->lock);
	if (s->let_in)
		src = gst_object_ref(s->src);
	g_mutex_unlock(&s->ice->lock);
	if (!src)
		return;
	clock = gst_element_get_clock(src);
	if (clock) {
		now = gst_clock_get_time(clock) - gst_element_get_base_time(src);
		gst_object_unref(clock);
		buf = gst_buffer_new_memdup(bytes, len);
		GST_BUFFER_PTS(buf) = GST_BUFFER_DTS(buf) = now;
		gst_app_src_push_buffer(GST_APP_SRC(src), buf);
	}
	gst_object_unref(src);
}

/* Addresses */

static GInetSocketAddress *address_of(const NiceAddress *address)
{
	struct sockaddr_storage raw;

	nice_address_copy_to_sockaddr(address, (struct sockaddr *)&raw);
	return G_INET_SOCKET_ADDRESS(g_socket_address_new_from_native(&raw, sizeof(raw)));
}

static gboolean has_kind(const struct offer_ice *o, enum candidate_kind kind)
{
	for (guint i = 0; i < o->candidates; i++)
		if (o->candidate[i].kind == kind)
			return TRUE;
	return FALSE;
}

static gpointer run(gpointer data)
{
	struct ice *ice = data;

	g_main_context_push_thread_default(ice->context);
	g_main_loop_run(ice->loop);
	g_main_context_pop_thread_default(ice->context);
	return NULL;
}

static gboolean is_gathered(struct ice *ice)
{
	return ice->stream[CALL_VIDEO].gathered && ice->stream[CALL_AUDIO].gathered;
}

static gboolean is_found(const struct stream *s)
{
	return s->local && (s->state == NICE_COMPONENT_STATE_CONNECTED ||
			    s->state == NICE_COMPONENT_STATE_READY);
}

static gboolean is_connected(struct ice *ice)
{
	return is_found(&ice->stream[CALL_VIDEO]) && is_found(&ice->stream[CALL_AUDIO]);
}

static gboolean wait_for(struct ice *ice, gboolean (*what)(struct ice *), gint ms)
{
	gint64 end = g_get_monotonic_time() + ms * G_TIME_SPAN_MILLISECOND;
	gboolean done;

	g_mutex_lock(&ice->lock);
	while (!(done = what(ice)) && g_cond_wait_until(&ice->changed, &ice->lock, end))
		;
	g_mutex_unlock(&ice->lock);
	return done;
}

/* Is one server both? A relay tells what STUN would, and libnice takes its answers for the relay's.
 */
static gboolean is_same(const struct ice_params *p)
{
	return p->stun && p->turn &&
	       g_inet_address_equal(g_inet_socket_address_get_address(p->stun),
				    g_inet_socket_address_get_address(p->turn)) &&
	       g_inet_socket_address_get_port(p->stun) == g_inet_socket_address_get_port(p->turn);
}

static void use_server(struct ice *ice, GInetSocketAddress *stun)
{
	char *host = address_host(stun);

	g_object_set(ice->agent, "stun-server", host, "stun-server-port",
		     (guint)g_inet_socket_address_get_port(stun), NULL);
	g_free(host);
}

static gboolean add_stream(struct ice *ice, struct stream *s, const struct ice_params *p)
{
	guint id = nice_agent_add_stream(ice->agent, 1);
	char *host;

	if (!id)
		return FALSE;
	g_mutex_lock(&ice->lock);
	s->id = id;
	g_mutex_unlock(&ice->lock);
	nice_agent_set_port_range(ice->agent, id, COMPONENT, p->port[s->media], p->port[s->media]);
	if (p->turn) {
		host = address_host(p->turn);
		nice_agent_set_relay_info(ice->agent, id, COMPONENT, host,
					  g_inet_socket_address_get_port(p->turn), p->user,
					  p->secret, NICE_RELAY_TYPE_TURN_UDP);
		g_free(host);
	}
	nice_agent_set_stream_tos(ice->agent, id, (gint)(p->dscp[s->media] << 2));
	nice_agent_attach_recv(ice->agent, id, COMPONENT, ice->context, on_packet, s);
	return nice_agent_gather_candidates(ice->agent, id);
}

static void say_useless(GInetSocketAddress *server, const char *what, const char *why)
{
	char *host = address_host(server);

	g_printerr("paqm-streamer: the %s server %s port %u %s; the call goes on without it\n",
		   what, host, g_inet_socket_address_get_port(server), why);
	g_free(host);
}

/* Servers that were of no use: each is said once. FALSE: it is worth while to do without a relay.
 */
static gboolean judge_servers(const struct ice_params *p, const struct offer *mine,
			      gboolean gathered)
{
	gboolean told = TRUE, relay = TRUE;

	for (int i = 0; i < CALL_MEDIA; i++) {
		/* what a host without NAT is told is its own address */
		told = told && (gathered || has_kind(&mine->stream[i].ice, CANDIDATE_SRFLX));
		relay = relay && has_kind(&mine->stream[i].ice, CANDIDATE_RELAY);
	}
	if (p->turn && !relay)
		say_useless(p->turn, "TURN",
			    gathered ? "gives no relay: are user and secret right, and may this "
				       "user have two?"
				     : "has not answered for 2 s");
	if (p->stun && !told)
		say_useless(p->stun, "STUN", "has told nothing new for 2 s");
	return relay || !gathered || !is_same(p);
}

struct ice *ice_new(const struct ice_params *p, struct offer *mine, GError **error)
{
	struct ice *ice = g_new0(struct ice, 1);
	gboolean ok = TRUE, gathered;

	g_mutex_init(&ice->lock);
	g_cond_init(&ice->changed);
	ice->context = g_main_context_new();
	ice->loop = g_main_loop_new(ice->context, FALSE);
	ice->agent = nice_agent_new_full(ice->context, NICE_COMPATIBILITY_RFC5245,
					 NICE_AGENT_OPTION_NONE);
	/* a call is UDP, and asks no router for holes in it */
	g_object_set(ice->agent, "controlling-mode", p->controlling, "upnp", FALSE, "ice-tcp",
		     FALSE, NULL);
	nice_agent_set_software(ice->agent, "paqm-streamer");
	ice->turn = p->turn ? g_object_ref(p->turn) : NULL;
	if (p->stun && !is_same(p))
		use_server(ice, p->stun);
	g_signal_connect(ice->agent, "candidate-gathering-done", G_CALLBACK(on_gathered), ice);
	g_signal_connect(ice->agent, "component-state-changed", G_CALLBACK(on_state), ice);
	g_signal_connect(ice->agent, "new-selected-pair-full", G_CALLBACK(on_pair), ice);
	ice->thread = g_thread_new("ice", run, ice);
	for (int i = 0; i < CALL_MEDIA; i++) {
		ice->stream[i].ice = ice;
		ice->stream[i].media = i;
		ok = ok && add_stream(ice, &ice->stream[i], p);
	}
	gathered = ok && wait_for(ice, is_gathered, ICE_GATHER_MS);
	for (int i = 0; i < CALL_MEDIA && ok; i++) {
		candidates_tell(ice->agent, ice->stream[i].id, &mine->stream[i].ice);
		ok = mine->stream[i].ice.candidates > 0 && mine->stream[i].ice.ufrag[0];
	}
	if (ok && judge_servers(p, mine, gathered))
		return ice;
	if (ok) { /* it would not have us as users of its relay, but STUN is for all */
		struct ice_params less = *p;

		less.turn = NULL;
		ice_free(ice);
		for (int i = 0; i < CALL_MEDIA; i++)
			memset(&mine->stream[i].ice, 0, sizeof(mine->stream[i].ice));
		return ice_new(&less, mine, error);
	}
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED,
		    "ICE finds no address of this host to receive at, UDP ports %u and %u: is a "
		    "network up, and does no other program use these ports? Give another --port, "
		    "or --ice off",
		    p->port[CALL_VIDEO], p->port[CALL_AUDIO]);
	ice_free(ice);
	return NULL;
}

gboolean ice_connect(struct ice *ice, const struct offer *theirs, GError **error)
{
	for (int i = 0; i < CALL_MEDIA; i++)
		candidates_try(ice->agent, ice->stream[i].id, &theirs->stream[i].ice);
	if (wait_for(ice, is_connected, ICE_CONNECT_MS))
		return TRUE;
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE,
		    "ICE has found no path for media to the peer in %d s: give both ends --stun, "
		    "and one of them --turn if a network in between lets no other through",
		    ICE_CONNECT_MS / 1000);
	return FALSE;
}

void ice_watch(struct ice *ice, ice_moved_fn moved, gpointer data)
{
	g_mutex_lock(&ice->lock);
	ice->moved = moved;
	ice->data = data;
	if (ice->told && !ice->idle)
		ice->idle = g_idle_add(tell_moved, ice);
	g_mutex_unlock(&ice->lock);
}

void ice_path(struct ice *ice, enum call_media media, struct ice_path *path)
{
	struct stream *s = &ice->stream[media];

	g_mutex_lock(&ice->lock);
	*path = (struct ice_path){.here = candidate_kind(s->local),
				  .there = candidate_kind(s->remote),
				  .from = address_of(&s->local->base_addr),
				  .to = address_of(&s->remote->addr),
				  .relayed = s->local->type == NICE_CANDIDATE_TYPE_RELAYED};
	g_mutex_unlock(&ice->lock);
	if (path->relayed) {
		g_object_unref(path->to);
		path->to = g_object_ref(ice->turn);
		return;
	}
	path->socket = nice_agent_get_selected_socket(ice->agent, s->id, COMPONENT);
	if (path->socket)
		g_object_ref(path->socket);
}

void ice_path_clear(struct ice_path *path)
{
	g_clear_object(&path->socket);
	g_clear_object(&path->from);
	g_clear_object(&path->to);
}

char *ice_path_text(const struct ice_path *path)
{
	char *from = g_socket_connectable_to_string(G_SOCKET_CONNECTABLE(path->from));
	char *to = g_socket_connectable_to_string(G_SOCKET_CONNECTABLE(path->to));
	char *text = g_strdup_printf("from %s to %s (%s to %s)", from, to,
				     candidate_names[path->here], candidate_names[path->there]);

	g_free(from);
	g_free(to);
	return text;
}

/* A streaming thread's packet. One that cannot be sent is lost, as on any path. */
static GstFlowReturn on_sample(GstAppSink *sink, gpointer data)
{
	GstSample *sample = gst_app_sink_pull_sample(sink);
	struct stream *s = data;
	GstBuffer *buf = sample ? gst_sample_get_buffer(sample) : NULL;
	GstMapInfo map;

	if (buf && gst_buffer_map(buf, &map, GST_MAP_READ)) {
		if (nice_agent_send(s->ice->agent, s->id, COMPONENT, (guint)map.size,
				    (const char *)map.data) < 0) {
			g_mutex_lock(&s->ice->lock);
			s->failed++;
			g_mutex_unlock(&s->ice->lock);
		}
		gst_buffer_unmap(buf, &map);
	}
	if (sample)
		gst_sample_unref(sample);
	return GST_FLOW_OK;
}

GstElement *ice_sink(struct ice *ice, enum call_media media)
{
	GstElement *sink = gst_element_factory_make("appsink", NULL);
	GstAppSinkCallbacks on = {.new_sample = on_sample};

	g_object_set(sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, NULL);
	gst_app_sink_set_callbacks(GST_APP_SINK(sink), &on, &ice->stream[media], NULL);
	return sink;
}

GstElement *ice_src(struct ice *ice, enum call_media media, GstCaps *caps)
{
	GstElement *src = gst_element_factory_make("appsrc", NULL);

	g_object_set(src, "caps", caps, "is-live", TRUE, "format", GST_FORMAT_TIME, "max-bytes",
		     (guint64)QUEUED_BYTES, "leaky-type", GST_APP_LEAKY_TYPE_UPSTREAM, NULL);
	ice->stream[media].src = gst_object_ref(src);
	return src;
}

void ice_let_in(struct ice *ice, enum call_media media)
{
	g_mutex_lock(&ice->lock);
	ice->stream[media].let_in = TRUE;
	g_mutex_unlock(&ice->lock);
}

static gboolean quit(gpointer loop)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void on_closed(GObject *agent, GAsyncResult *result, gpointer data)
{
	struct ice *ice = data;

	(void)agent;
	(void)result;
	g_mutex_lock(&ice->lock);
	ice->closed = TRUE;
	g_cond_broadcast(&ice->changed);
	g_mutex_unlock(&ice->lock);
}

static gboolean close_agent(gpointer data)
{
	struct ice *ice = data;

	nice_agent_close_async(ice->agent, on_closed, ice);
	return G_SOURCE_REMOVE;
}

static gboolean is_closed(struct ice *ice)
{
	return ice->closed;
}

static void in_thread(struct ice *ice, GSourceFunc fn, gpointer data)
{
	GSource *source = g_idle_source_new();

	g_source_set_callback(source, fn, data, NULL);
	g_source_attach(source, ice->context);
	g_source_unref(source);
}

void ice_free(struct ice *ice)
{
	if (!ice)
		return;
	/* a relay that nobody needs any more is given back: a user may have only so many */
	in_thread(ice, close_agent, ice);
	wait_for(ice, is_closed, ICE_CLOSE_MS);
	in_thread(ice, quit, ice->loop);
	g_thread_join(ice->thread);
	g_object_unref(ice->agent);
	if (ice->idle)
		g_source_remove(ice->idle);
	for (int i = 0; i < CALL_MEDIA; i++) {
		struct stream *s = &ice->stream[i];

		if (s->failed)
			g_printerr("paqm-streamer: %s: %" G_GUINT64_FORMAT
				   " packets could not be sent\n",
				   call_media_names[i], s->failed);
		g_clear_pointer(&s->local, nice_candidate_free);
		g_clear_pointer(&s->remote, nice_candidate_free);
		gst_clear_object(&s->src);
	}
	g_main_loop_unref(ice->loop);
	g_main_context_unref(ice->context);
	g_clear_object(&ice->turn);
	g_mutex_clear(&ice->lock);
	g_cond_clear(&ice->changed);
	g_free(ice);
}
