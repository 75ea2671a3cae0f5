/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The little of the kernel that kernel/paqm_classify.c needs, so that the very same file
 * compiles in user space. A packet is two blocks of memory, each as long as its bytes:
 * what may be read directly and what lies in fragments; a sanitizer sees every step
 * beyond them. Functions follow the kernel's in what they return, limits included.
 */
#ifndef PAQM_SHIM_H
#define PAQM_SHIM_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PAQM_COMPAT_H /* about qdiscs, not about packets */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define htons(x) ((__be16)__builtin_bswap16(x))
#define htonl(x) ((__be32)__builtin_bswap32(x))
#else
#define htons(x) ((__be16)(x))
#define htonl(x) ((__be32)(x))
#endif
#define ntohs(x) htons(x)
#define ntohl(x) htonl(x)
#define __force
#define likely(x) (x)
#define unlikely(x) (x)
#define BIT(n) (1UL << (n))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define BIT_ULL(n) (1ULL << (n))
#define noinline __attribute__((__noinline__))
#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif

static inline u16 get_unaligned_be16(const void *p)
{
	const u8 *b = p;

	return (u16)(b[0] << 8 | b[1]);
}

static inline u32 get_unaligned_be32(const void *p)
{
	return (u32)get_unaligned_be16(p) << 16 | get_unaligned_be16((const u8 *)p + 2);
}

static inline u64 get_unaligned_le64(const void *p)
{
	const u8 *b = p;
	u64 value = 0;
	int i;

	for (i = 7; i >= 0; i--)
		value = value << 8 | b[i];
	return value;
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	/* by halves: machines of 32 bits have no larger type; @shift is 64 here */
	u64 low = (a & UINT32_MAX) * (b & UINT32_MAX);
	u64 cross = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
	u64 other = (a & UINT32_MAX) * (b >> 32) + (cross & UINT32_MAX);

	return ((a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32)) >> (shift - 64);
}

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#define IP_MF 0x2000
#define IP_OFFSET 0x1FFF

struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};

#define VLAN_HLEN 4

/**
 * struct sk_buff - a packet
 * @data: linear part, @headlen bytes
 * @frags: the rest
 * @len: bytes of both
 * @protocol: Ethernet type that the stack believes in
 * @network: offset of the network header
 * @gso: several packets in one
 */
struct sk_buff {
	const u8 *data;
	const u8 *frags;
	unsigned int headlen, len;
	__be16 protocol;
	int network;
	bool gso;
	bool vlan; /* a tag stands beside it */
	u16 vlan_tci;
};

#define skb_vlan_tag_present(skb) ((skb)->vlan)
#define skb_vlan_tag_get(skb) ((skb)->vlan_tci)
#define VLAN_VID_MASK 0x0fff

static inline bool skb_is_gso(const struct sk_buff *skb)
{
	return skb->gso;
}

static inline int skb_network_offset(const struct sk_buff *skb)
{
	return skb->network;
}

static inline void skb_set_network_header(struct sk_buff *skb, int off)
{
	skb->network = off;
}

static inline unsigned char *skb_network_header(const struct sk_buff *skb)
{
	return (unsigned char *)(uintptr_t)skb->data + skb->network;
}

static inline unsigned char *skb_tail_pointer(const struct sk_buff *skb)
{
	return (unsigned char *)(uintptr_t)skb->data + skb->headlen;
}

static inline unsigned int skb_headlen(const struct sk_buff *skb)
{
	return skb->headlen;
}

static inline void *skb_header_pointer(const struct sk_buff *skb, int offset, int len, void *buffer)
{
	int i;

	if ((int)skb->headlen - offset >= len && offset >= 0)
		return (void *)(uintptr_t)(skb->data + offset);
	if (offset < 0 || offset > (int)skb->len - len)
		return NULL;
	for (i = 0; i < len; i++) {
		unsigned int at = (unsigned int)(offset + i);

		((u8 *)buffer)[i] =
			at < skb->headlen ? skb->data[at] : skb->frags[at - skb->headlen];
	}
	return buffer;
}

static inline bool eth_type_vlan(__be16 type)
{
	return type == htons(ETH_P_8021Q) || type == htons(ETH_P_8021AD);
}

static inline u8 ipv6_get_dsfield(const struct ipv6hdr *ip6)
{
	const u8 *h = (const u8 *)ip6;

	return (u8)(h[0] << 4 | h[1] >> 4);
}

#define IP6_OFFSET 0xFFF8
#define IP6_MF 0x0001
#define NEXTHDR_HOP 0
#define NEXTHDR_ROUTING 43
#define NEXTHDR_FRAGMENT 44
#define NEXTHDR_AUTH 51
#define NEXTHDR_NONE 59
#define NEXTHDR_DEST 60

static inline bool ipv6_ext_hdr(u8 next)
{
	return next == NEXTHDR_HOP || next == NEXTHDR_ROUTING || next == NEXTHDR_FRAGMENT ||
	       next == NEXTHDR_AUTH || next == NEXTHDR_NONE || next == NEXTHDR_DEST;
}

#endif /* PAQM_SHIM_H */
