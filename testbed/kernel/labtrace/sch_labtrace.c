// SPDX-License-Identifier: GPL-2.0
/*
 * sch_labtrace - a link that delivers packets when a recorded or modelled one did
 *
 * A parent qdisc for the lab, with the meaning of mahimahi's mm-link (Netravali
 * et al., USENIX ATC 2015): the trace is a text file with one line per
 * opportunity, its time in ms; an opportunity carries 1514 bytes, parts of
 * several packets or of one; what finds no packet waiting is lost. The trace
 * begins again when its last opportunity has passed. The qdisc below is asked for
 * a packet only when the link is free; one packet, the one that is being sent,
 * waits outside of it, so the queue below is the only one.
 *
 * Parameters: trace (file), start_ns (CLOCK_REALTIME of the trace's time 0).
 */
#include <linux/kernel_read_file.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>
#include <net/pkt_sched.h>

#define OPPORTUNITY 1514 /* bytes */
#define LONGEST_MS (4 * 3600 * 1000U)
#define FILE_MAX (64 << 20)

static char *trace;
module_param(trace, charp, 0444);
MODULE_PARM_DESC(trace, "file with one delivery opportunity per line, in ms");
static unsigned long long start_ns;
module_param(start_ns, ullong, 0644);
MODULE_PARM_DESC(start_ns, "CLOCK_REALTIME of the trace's beginning");

static u16 *opportunities; /* in each ms */
static u32 length_ms;

struct labtrace_data {
	struct Qdisc *child;
	struct qdisc_watchdog watchdog;
	u64 slot;     /* ms: opportunities up to here are in the credit */
	u64 credit;   /* bytes */
	bool waiting; /* a packet waited when we looked last */
};

/* ms of the trace, counted on over its repetitions; @into: ns of the present ms gone */
static u64 labtrace_now(u32 *into)
{
	u64 now = ktime_get_real_ns(), begin = READ_ONCE(start_ns);

	/* before its beginning the trace has run for some whole repetitions */
	if (now < begin)
		now += (u64)length_ms * NSEC_PER_MSEC * (1 + (begin - now) / length_ms);
	return div_u64_rem(now - begin, NSEC_PER_MSEC, into);
}

static u32 labtrace_bytes(u64 slot)
{
	u32 at;

	div_u64_rem(slot, length_ms, &at);
	return opportunities[at] * OPPORTUNITY;
}

/* Look again when the next opportunity comes. */
static void labtrace_wait(struct labtrace_data *q, u64 slot, u32 into)
{
	u64 next = slot + 1, end = slot + length_ms;

	while (next < end && !labtrace_bytes(next))
		next++;
	qdisc_watchdog_schedule_ns(&q->watchdog,
				   ktime_get_ns() + (next - slot) * NSEC_PER_MSEC - into);
}

static int labtrace_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct labtrace_data *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret = qdisc_enqueue(skb, q->child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return ret;
}

static struct sk_buff *labtrace_dequeue(struct Qdisc *sch)
{
	struct labtrace_data *q = qdisc_priv(sch);
	struct sk_buff *skb = q->child->ops->peek(q->child);
	u32 into;
	u64 slot;

	if (!skb) {
		q->waiting = false;
		return NULL;
	}
	slot = labtrace_now(&into);
	if (!q->waiting || slot < q->slot) {
		q->waiting = true;
		q->credit = 0;
		q->slot = slot;
	}
	while (q->slot < slot)
		q->credit += labtrace_bytes(++q->slot);
	if (qdisc_pkt_len(skb) > q->credit) {
		labtrace_wait(q, slot, into);
		return NULL;
	}
	skb = qdisc_dequeue_peeked(q->child);
	if (!skb)
		return NULL;
	q->credit -= qdisc_pkt_len(skb);
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void labtrace_reset(struct Qdisc *sch)
{
	struct labtrace_data *q = qdisc_priv(sch);

	qdisc_reset(q->child);
	qdisc_watchdog_cancel(&q->watchdog);
	q->waiting = false;
}

static int labtrace_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct labtrace_data *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops, TC_H_MAKE(sch->handle, 1),
				     extack);
	if (!q->child) {
		q->child = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(q->child, true);
	return 0;
}

static void labtrace_destroy(struct Qdisc *sch)
{
	struct labtrace_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
}

/* One class, 1, that is there always. */
static int labtrace_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
			  struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct labtrace_data *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ? new : &noop_qdisc, &q->child);
	return 0;
}

static struct Qdisc *labtrace_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct labtrace_data *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long labtrace_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void labtrace_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	tc_qdisc_stats_dump(sch, 1, walker);
}

static int labtrace_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
			       struct tcmsg *tcm)
{
	struct labtrace_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static const struct Qdisc_class_ops labtrace_class_ops = {
	.graft = labtrace_graft,
	.leaf = labtrace_leaf,
	.find = labtrace_find,
	.walk = labtrace_walk,
	.dump = labtrace_dump_class,
};

static struct Qdisc_ops labtrace_ops __read_mostly = {
	.cl_ops = &labtrace_class_ops,
	.id = "labtrace",
	.priv_size = sizeof(struct labtrace_data),
	.enqueue = labtrace_enqueue,
	.dequeue = labtrace_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = labtrace_init,
	.reset = labtrace_reset,
	.destroy = labtrace_destroy,
	.owner = THIS_MODULE,
};

/* Two passes over the text: how long the trace is, then how many opportunities each ms has. */
static int labtrace_parse(const char *text, size_t size)
{
	u64 last = 0, value;
	size_t at = 0;
	bool digits;

	while (at < size) {
		value = 0;
		digits = false;
		while (at < size && text[at] >= '0' && text[at] <= '9' && value <= LONGEST_MS) {
			value = value * 10 + (text[at++] - '0');
			digits = true;
		}
		if (!digits || value > LONGEST_MS || value < last ||
		    (at < size && text[at] != '\n')) {
			pr_err("labtrace: %s: byte %zu: expected lines with rising times in ms\n",
			       trace, at);
			return -EINVAL;
		}
		at++;
		last = value;
		if (opportunities && opportunities[value % length_ms] < U16_MAX)
			opportunities[value % length_ms]++;
	}
	if (!last) {
		pr_err("labtrace: %s: no opportunity\n", trace);
		return -EINVAL;
	}
	length_ms = last;
	return 0;
}

static int __init labtrace_module_init(void)
{
	void *text = NULL;
	ssize_t size;
	int err;

	if (!trace) {
		pr_err("labtrace: parameter trace is missing\n");
		return -EINVAL;
	}
	size = kernel_read_file_from_path(trace, 0, &text, FILE_MAX, NULL, READING_UNKNOWN);
	if (size < 0) {
		pr_err("labtrace: %s: cannot read: error %zd\n", trace, size);
		return size;
	}
	err = labtrace_parse(text, size);
	if (!err) {
		opportunities = vcalloc(length_ms, sizeof(*opportunities));
		err = opportunities ? labtrace_parse(text, size) : -ENOMEM;
	}
	vfree(text);
	if (!err)
		err = register_qdisc(&labtrace_ops);
	if (err)
		vfree(opportunities);
	return err;
}

static void __exit labtrace_module_exit(void)
{
	unregister_qdisc(&labtrace_ops);
	vfree(opportunities);
}

module_init(labtrace_module_init);
module_exit(labtrace_module_exit);

MODULE_DESCRIPTION("lab: a link that replays a delivery trace");
MODULE_AUTHOR("The P-AQM project");
MODULE_LICENSE("GPL");
