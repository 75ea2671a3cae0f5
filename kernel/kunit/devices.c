// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of devices: what their packets have in front of IP where the queue sees them.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include "../paqm_derive.h"

static const struct header_ops paqm_makes_headers = { .create = eth_header };

static void paqm_kunit_header(struct kunit *test)
{
	struct net_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	/* WireGuard, a modem on USB: none at all */
	KUNIT_EXPECT_EQ(test, paqm_header_len(dev), 0);
	/* PPPoE: room for PPP's, its own, and Ethernet's */
	dev->hard_header_len = 22;
	KUNIT_EXPECT_EQ(test, paqm_header_len(dev), 0);
	/* GRE to many ends makes its header here */
	dev->header_ops = &paqm_makes_headers;
	dev->hard_header_len = 24;
	KUNIT_EXPECT_EQ(test, paqm_header_len(dev), 24);
	/* Ethernet; over USB (RNDIS) there is room for what the driver adds */
	dev->hard_header_len = ETH_HLEN;
	dev->min_header_len = ETH_HLEN;
	KUNIT_EXPECT_EQ(test, paqm_header_len(dev), ETH_HLEN);
	dev->hard_header_len += 44;
	KUNIT_EXPECT_EQ(test, paqm_header_len(dev), ETH_HLEN);
}

static struct kunit_case paqm_devices_cases[] = {
	KUNIT_CASE(paqm_kunit_header),
	{}
};

static struct kunit_suite paqm_devices_suite = {
	.name = "paqm_devices",
	.test_cases = paqm_devices_cases,
};

kunit_test_suites(&paqm_devices_suite);
