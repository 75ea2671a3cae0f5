// SPDX-License-Identifier: GPL-2.0
/* Counts the tracepoints of sch_paqm per device, in the kernel; paqmtop reads the sums. */
#include <linux/types.h>
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "paqmtop.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PAQMTOP_DEVICES);
	__type(key, char[PAQMTOP_NAME]);
	__type(value, struct paqmtop_device);
} devices SEC(".maps");

/* Records for which the table of devices had no room. */
__u64 lost;

static const struct paqmtop_device empty;

/* The row of a device; its name is a copy, because a program may not point into its context. */
static __always_inline struct paqmtop_device *device_of(char *key)
{
	struct paqmtop_device *dev;
	bool ended = false;

	/* what stands behind the name's end is whatever the ring buffer held before */
#pragma unroll
	for (int i = 0; i < PAQMTOP_NAME; i++) {
		if (ended)
			key[i] = 0;
		else if (!key[i])
			ended = true;
	}
	dev = bpf_map_lookup_elem(&devices, key);
	if (!dev) {
		bpf_map_update_elem(&devices, key, &empty, BPF_NOEXIST);
		dev = bpf_map_lookup_elem(&devices, key);
	}
	if (dev)
		dev->heard_ns = bpf_ktime_get_ns();
	else
		__sync_fetch_and_add(&lost, 1);
	return dev;
}

SEC("tp/paqm/law")
int on_law(struct paqmtop_law *law)
{
	struct paqmtop_device *dev;
	char name[PAQMTOP_NAME];

	__builtin_memcpy(name, law->dev, sizeof(name));
	dev = device_of(name);
	if (!dev)
		return 0;
	dev->router_id = law->router_id;
	dev->capacity = law->capacity;
	dev->fair = law->fair;
	dev->rate = law->rate;
	dev->elastic_rate = law->elastic_rate;
	dev->seq = law->seq;
	dev->backlog = law->backlog;
	dev->n_media = law->n_media;
	dev->n_elastic = law->n_elastic;
	dev->share_q16 = law->share_q16;
	__sync_fetch_and_add(&dev->rounds, 1);
#pragma unroll
	for (int i = 0; i < PAQMTOP_EVENTS; i++)
		if (law->events & (1U << i))
			__sync_fetch_and_add(&dev->event_rounds[i], 1);
	return 0;
}

SEC("tp/paqm/notice")
int on_notice(struct paqmtop_notice *notice)
{
	struct paqmtop_device *dev;
	char name[PAQMTOP_NAME];

	__builtin_memcpy(name, notice->dev, sizeof(name));
	dev = device_of(name);
	if (!dev)
		return 0;
	dev->erf = notice->erf;
	dev->ecf = notice->ecf;
	if (notice->queued)
		__sync_fetch_and_add(&dev->notices_queued, 1);
	else
		__sync_fetch_and_add(&dev->notices_ring_full, 1);
	return 0;
}

SEC("tp/paqm/drop")
int on_drop(struct paqmtop_drop *drop)
{
	struct paqmtop_device *dev;
	char name[PAQMTOP_NAME];
	__u32 class = drop->class, reason = drop->reason;

	__builtin_memcpy(name, drop->dev, sizeof(name));
	dev = device_of(name);
	if (!dev || class >= PAQMTOP_CLASSES || reason >= PAQMTOP_REASONS)
		return 0;
	__sync_fetch_and_add(&dev->packets[class][reason], 1);
	__sync_fetch_and_add(&dev->bytes[class][reason], drop->len);
	return 0;
}
