// SPDX-License-Identifier: GPL-2.0
/* Candidates of ICE, as libnice and offers have them; see candidates.h. */
#include "streamer/call/candidates.h"

#include <gio/gio.h>
#include <string.h>

/* Candidates that are told of each kind, if there are more than fit. */
static const guint shares[CANDIDATE_KINDS] = {
	[CANDIDATE_HOST] = 3, [CANDIDATE_SRFLX] = 3, [CANDIDATE_RELAY] = 2};

enum candidate_kind candidate_kind(const NiceCandidate *c)
{
	switch (c->type) {
	case NICE_CANDIDATE_TYPE_HOST:
		return CANDIDATE_HOST;
	case NICE_CANDIDATE_TYPE_RELAYED:
		return CANDIDATE_RELAY;
	default: /* what the peer has seen is what a server would have */
		return CANDIDATE_SRFLX;
	}
}

static gboolean has(const struct offer_ice *in, const struct offer_candidate *c)
{
	for (guint i = 0; i < in->candidates; i++)
		if (!strcmp(in->candidate[i].address, c->address) &&
		    in->candidate[i].port == c->port)
			return TRUE;
	return FALSE;
}

static gboolean take(struct offer_ice *out, const NiceCandidate *c)
{
	struct offer_candidate *to = &out->candidate[out->candidates];
	char address[NICE_ADDRESS_STRING_LEN];

	memset(to, 0, sizeof(*to));
	nice_address_to_string(&c->addr, address);
	to->port = (guint16)nice_address_get_port(&c->addr);
	/* a server may have told what no peer would take */
	if (!to->port || !offer_address(to->address, address))
		return FALSE;
	g_strlcpy(to->foundation, c->foundation, sizeof(to->foundation));
	to->priority = c->priority;
	to->kind = candidate_kind(c);
	if (has(out, to))
		return FALSE;
	out->candidates++;
	return TRUE;
}

static gint by_priority(gconstpointer a, gconstpointer b)
{
	guint32 p = ((const NiceCandidate *)a)->priority, q = ((const NiceCandidate *)b)->priority;

	return p < q ? 1 : p > q ? -1 : 0;
}

void candidates_tell(NiceAgent *agent, guint stream, struct offer_ice *out)
{
	GSList *all = nice_agent_get_local_candidates(agent, stream, COMPONENT);
	char *ufrag = NULL, *pwd = NULL;
	guint left[CANDIDATE_KINDS];

	memcpy(left, shares, sizeof(left));
	all = g_slist_sort(all, by_priority);
	for (int turn = 0; turn < 2; turn++) /* the share of each kind, then what fits */
		for (GSList *l = all; l && out->candidates < OFFER_CANDIDATES; l = l->next) {
			guint *share = &left[candidate_kind(l->data)];

			if ((turn || *share) && take(out, l->data) && !turn)
				--*share;
		}
	g_slist_free_full(all, (GDestroyNotify)nice_candidate_free);
	if (nice_agent_get_local_credentials(agent, stream, &ufrag, &pwd)) {
		g_strlcpy(out->ufrag, ufrag, sizeof(out->ufrag));
		g_strlcpy(out->pwd, pwd, sizeof(out->pwd));
	}
	g_free(ufrag);
	g_free(pwd);
}

void candidates_more(NiceAgent *agent, guint stream, const struct offer_ice *offered,
		     struct offer_ice *later, struct offer_ice *more)
{
	GSList *all = nice_agent_get_local_candidates(agent, stream, COMPONENT);

	all = g_slist_sort(all, by_priority);
	for (GSList *l = all; l && later->candidates < OFFER_CANDIDATES; l = l->next) {
		const NiceCandidate *c = l->data;

		/* what a peer has seen it knows */
		if (c->type == NICE_CANDIDATE_TYPE_PEER_REFLEXIVE || !take(later, c))
			continue;
		if (has(offered, &later->candidate[later->candidates - 1]))
			later->candidates--;
		else
			more->candidate[more->candidates++] =
				later->candidate[later->candidates - 1];
	}
	g_slist_free_full(all, (GDestroyNotify)nice_candidate_free);
}

void candidates_add(NiceAgent *agent, guint stream, const struct offer_ice *theirs)
{
	static const NiceCandidateType types[CANDIDATE_KINDS] = {
		[CANDIDATE_HOST] = NICE_CANDIDATE_TYPE_HOST,
		[CANDIDATE_SRFLX] = NICE_CANDIDATE_TYPE_SERVER_REFLEXIVE,
		[CANDIDATE_RELAY] = NICE_CANDIDATE_TYPE_RELAYED};
	GSList *all = NULL;

	for (guint i = 0; i < theirs->candidates; i++) {
		const struct offer_candidate *from = &theirs->candidate[i];
		NiceCandidate *c = nice_candidate_new(types[from->kind]);

		c->stream_id = stream;
		c->component_id = COMPONENT;
		c->priority = from->priority;
		g_strlcpy(c->foundation, from->foundation, sizeof(c->foundation));
		nice_address_set_from_string(&c->addr, from->address);
		nice_address_set_port(&c->addr, from->port);
		c->base_addr = c->addr;
		all = g_slist_append(all, c);
	}
	if (all)
		nice_agent_set_remote_candidates(agent, stream, COMPONENT, all);
	g_slist_free_full(all, (GDestroyNotify)nice_candidate_free);
}

void candidates_try(NiceAgent *agent, guint stream, const struct offer_ice *theirs)
{
	nice_agent_set_remote_credentials(agent, stream, theirs->ufrag, theirs->pwd);
	candidates_add(agent, stream, theirs);
}
