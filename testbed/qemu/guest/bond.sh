# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A bridge over a bond, as hosts of virtual machines have it: sender - veth - bridge - bond - veth -
# receiver. Packets wait at the bond's port, which no bridge knows. The bridge has no address, and the
# default route leads to a stranger who has the sender's. Read by `run` after pppd.sh.
echo "# a bridge over a bond"

bond_stat() { tc -s -j qdisc show dev line0 | jq -r ".[] | select(.kind == \"paqm\") | $1"; }
hears_nothing() { ! has_messages stranger; }
no_side() { ! ip link show dev side0; }

for ns in sender receiver stranger; do
	ip netns add $ns
	ip -n $ns link set lo up
done
ip link add down0 type veth peer name up0 netns sender
ip link add line0 type veth peer name up0 netns receiver
ip link add side0 type veth peer name up0 netns stranger
ip link add bond9 type bond mode active-backup miimon 100
ip link add br9 type bridge
ip link set line0 master bond9
ip link set bond9 master br9
ip link set down0 master br9
for device in line0 bond9 br9 down0 side0; do
	ip link set $device up
done
ip -n sender addr add 10.1.0.2/24 dev up0
ip -n receiver addr add 10.1.0.3/24 dev up0
ip -n stranger addr add 10.9.0.1/24 dev up0
ip -n stranger addr add 10.1.0.2/32 dev lo
for ns in sender receiver stranger; do
	ip -n $ns link set up0 up
done
ip addr add 10.9.0.5/24 dev side0
ip route add default via 10.9.0.1 metric 1
check "the bond sends by its port" wait_for grep -q 'Active Slave: line0' /proc/net/bonding/bond9
check "tc attaches paqm to the bond's port" tc qdisc replace dev line0 root handle 1: \
	paqm bandwidth 20mbit feedback icmp
sender python3 "$here/blast.py" --to 10.1.0.3 --kind rtp --flows 1 --rate 1e6 --size 372 --seconds 6
within "RTP is media" "$(bond_stat .media.sent_packets)" 300 100000
within "messages were sent" "$(bond_stat .notices_sent)" 1 10000
check "they reached the sender" has_messages sender
check "and nobody else" hears_nothing

ip link del br9
ip link del bond9
for ns in sender receiver stranger; do
	ip netns del $ns
done
wait_for no_side
