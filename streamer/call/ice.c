// SPDX-License-Identifier: GPL-2.0
/*
 * ICE with libnice; see ice.h. Its sockets are read in a thread of our own, and packets that are
 * not ICE's are handed on from there. The lock is never held while libnice is called, which calls
 * us back.
 */
#include "streamer/call/ice.h"

#include <string.h>

#include "streamer/call/candidates.h"
#include "streamer/call/ice_state.h"
#include "streamer/options.h"

#define ICE_CLOSE_MS 500
/*
 * Servers are asked at once, after 125 and after 375 ms; each further time takes twice as long, and
 * about two seconds in all. Checks have a first timeout of their own (RFC 8445, 500 ms), and after
 * as many tries ICE_CONNECT_MS are over.
 */
#define ASK_AGAIN_MS 125
#define ASK_TIMES 4
/* RFC 8489, as later on: a relay must not be lost with a second of the network. */
#define KEEP_AGAIN_MS 500
#define KEEP_TIMES 7

static struct ice_stream *stream_of(struct ice *ice, guint id)
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
	struct ice_stream *s;

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
	struct ice_stream *s;

	(void)agent;
	(void)component;
	g_mutex_lock(&ice->lock);
	s = stream_of(ice, id);
	if (s)
		s->state = (NiceComponentState)state;
	g_cond_broadcast(&ice->changed);
	g_mutex_unlock(&ice->lock);
	g_main_context_wakeup(NULL);
}

static gboolean tell_found(gpointer data)
{
	struct ice *ice = data;

	g_mutex_lock(&ice->lock);
	ice->found_idle = 0;
	g_mutex_unlock(&ice->lock);
	ice->found(ice->found_data);
	return G_SOURCE_REMOVE;
}

static void on_candidate(NiceAgent *agent, NiceCandidate *candidate, gpointer data)
{
	struct ice *ice = data;

	(void)agent;
	(void)candidate;
	g_mutex_lock(&ice->lock);
	if (ice->found && !ice->found_idle)
		ice->found_idle = g_idle_add(tell_found, ice);
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
	struct ice_stream *s;

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
	g_main_context_wakeup(NULL);
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

static gboolean is_found(const struct ice_stream *s)
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
	return p->stun && p->turn && address_equal(p->stun, p->turn);
}

/* How often a server that does not answer, and when first. */
static void ask(struct ice *ice, guint again_ms, guint times)
{
	g_object_set(ice->agent, "stun-initial-timeout", again_ms, "stun-max-retransmissions",
		     times, NULL);
}

static void use_server(struct ice *ice, GInetSocketAddress *stun)
{
	char *host = address_host(stun);

	g_object_set(ice->agent, "stun-server", host, "stun-server-port",
		     (guint)g_inet_socket_address_get_port(stun), NULL);
	g_free(host);
}

static gboolean add_stream(struct ice *ice, struct ice_stream *s, const struct ice_params *p)
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
	nice_agent_attach_recv(ice->agent, id, COMPONENT, ice->context, ice_on_packet, s);
	return nice_agent_gather_candidates(ice->agent, id);
}

#define SLOW "has not answered in half a second; the call begins without it"

static void say_useless(GInetSocketAddress *server, const char *what, const char *why)
{
	char *host = address_host(server);

	g_printerr("paqm-streamer: the %s server %s port %u %s\n", what, host,
		   g_inet_socket_address_get_port(server), why);
	g_free(host);
}

/* Servers that were of no use so far: each is said once. FALSE: it is worth while to do without a
 * relay.
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
				       "user have two? The call goes on without it"
				     : SLOW);
	if (p->stun && !told)
		say_useless(p->stun, "STUN", SLOW);
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
	ask(ice, ASK_AGAIN_MS, ASK_TIMES);
	nice_agent_set_software(ice->agent, "paqm-streamer");
	ice->turn = p->turn ? g_object_ref(p->turn) : NULL;
	if (p->stun && !is_same(p))
		use_server(ice, p->stun);
	g_signal_connect(ice->agent, "candidate-gathering-done", G_CALLBACK(on_gathered), ice);
	g_signal_connect(ice->agent, "new-candidate-full", G_CALLBACK(on_candidate), ice);
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
		ice->offered[i] = mine->stream[i].ice;
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
		    "network up, and are these ports free? Give another --port, or --ice off",
		    p->port[CALL_VIDEO], p->port[CALL_AUDIO]);
	ice_free(ice);
	return NULL;
}

static gboolean on_late(gpointer data)
{
	((struct ice *)data)->late = TRUE;
	return G_SOURCE_CONTINUE;
}

/* The main loop goes on meanwhile: the peer may have found more, or hang up. */
static gboolean wait_for_path(struct ice *ice)
{
	guint timer = g_timeout_add(ICE_CONNECT_MS, on_late, ice);
	gboolean done;

	for (;;) {
		g_mutex_lock(&ice->lock);
		done = is_connected(ice);
		g_mutex_unlock(&ice->lock);
		if (done || ice->late || ice->in_vain)
			break;
		g_main_context_iteration(NULL, TRUE);
	}
	g_source_remove(timer);
	ask(ice, KEEP_AGAIN_MS, KEEP_TIMES);
	return done;
}

gboolean ice_connect(struct ice *ice, const struct offer *theirs, ice_found_fn found, gpointer data,
		     GError **error)
{
	for (int i = 0; i < CALL_MEDIA; i++)
		candidates_try(ice->agent, ice->stream[i].id, &theirs->stream[i].ice);
	g_mutex_lock(&ice->lock);
	ice->found = found;
	ice->found_data = data;
	ice->found_idle = g_idle_add(tell_found, ice); /* since the offer was made */
	g_mutex_unlock(&ice->lock);
	if (wait_for_path(ice))
		return TRUE;
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE,
		    "ICE has found no path for media to the peer in %d s: give both ends --stun, "
		    "and one of them --turn if a network in between blocks every other path",
		    ICE_CONNECT_MS / 1000);
	return FALSE;
}

void ice_give_up(struct ice *ice)
{
	ice->in_vain = TRUE;
}

gboolean ice_more(struct ice *ice, struct offer_ice more[CALL_MEDIA])
{
	gboolean any = FALSE;

	memset(more, 0, CALL_MEDIA * sizeof(more[0]));
	for (int i = 0; i < CALL_MEDIA; i++) {
		candidates_more(ice->agent, ice->stream[i].id, &ice->offered[i], &ice->later[i],
				&more[i]);
		any |= more[i].candidates > 0;
	}
	return any;
}

void ice_try_more(struct ice *ice, const struct offer_ice more[CALL_MEDIA])
{
	for (int i = 0; i < CALL_MEDIA; i++) {
		struct offer_ice some = more[i];

		some.candidates = MIN(some.candidates, OFFER_CANDIDATES - ice->heard[i]);
		ice->heard[i] += some.candidates;
		candidates_add(ice->agent, ice->stream[i].id, &some);
	}
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
	struct ice_stream *s = &ice->stream[media];

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
	if (ice->found_idle)
		g_source_remove(ice->found_idle);
	for (int i = 0; i < CALL_MEDIA; i++) {
		struct ice_stream *s = &ice->stream[i];

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
