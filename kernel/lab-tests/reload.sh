#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Load, attach, change, detach, unload and load again while traffic flows; devices
# that go down or vanish, namespaces that die with the qdisc attached. Meant for
# the debug kernel (KASAN, lockdep, kmemleak): the caller fails on any report.
. "$(dirname "$0")/lib.sh"
pair
blast --kind rtp --flows 20 --rate 6e6 --seconds 60 &
media=$!
# no TCP here: between two qdiscs nothing would limit it, and virtual time would stand still
blast --kind quic --flows 20 --port 8000 --rate 15e6 --size 1400 --seconds 60 &
elastic=$!
tc="ip netns exec a tc"
turns=0
for i in $(seq 1 15); do
	load || break
	$tc qdisc add dev a0 root handle 1: paqm bandwidth $((2 + i))mbit feedback icmp flows 64 || break
	sleep 0.7
	rmmod sch_paqm 2>/dev/null && break # must be refused: it is in use
	$tc qdisc change dev a0 root handle 1: paqm bandwidth $((20 - i))mbit feedback none law ecf || break
	sleep 0.3
	$tc qdisc change dev a0 root handle 1: paqm feedback icmp law erf media-target 2ms limit 3000 || break
	$tc -s qdisc show dev a0 >/dev/null || break
	ip -n a link set a0 down
	ip -n a link set a0 up
	sleep 0.3
	if [ $((i % 3)) = 0 ]; then
		$tc qdisc replace dev a0 root handle 2: prio
		$tc qdisc add dev a0 parent 2:2 handle 3: paqm feedback icmp
		$tc qdisc replace dev a0 parent 2:2 handle 4: paqm bandwidth 1mbit feedback icmp
		sleep 0.2
	fi
	$tc qdisc del dev a0 root || break
	unload || break
	turns=$i
done
within "turns of load, attach, change, detach, unload" "$turns" 15 15
load
for i in 1 2 3 4 5; do # a namespace dies with the qdisc attached and traffic in it
	ip netns add n$i
	ip -n n$i link add d0 type dummy
	ip -n n$i addr add 10.9.0.1/24 dev d0
	ip -n n$i link set d0 up
	ip netns exec n$i tc qdisc add dev d0 root paqm bandwidth 1mbit feedback icmp
	ip netns exec n$i python3 "$here/../../tests/blast.py" --to 10.9.0.2 --rate 3e6 --seconds 0.5
	ip netns del n$i
done
# where multicast is forwarded, a raw socket of ICMPv6 takes RTNL when it ends
ip netns add m
ip -n m link add d0 type dummy
ip -n m link set d0 up
ip netns exec m python3 -c '
import socket, time
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, 200, 1)  # MRT6_INIT
time.sleep(20)' &
router=$!
sleep 1
within "multicast is forwarded" \
	"$(ip netns exec m cat /proc/sys/net/ipv6/conf/all/mc_forwarding)" 1 1
for what in "add dev d0 root paqm bandwidth 1mbit feedback icmp rtt auto" \
	"change dev d0 root paqm rtt 100ms" "change dev d0 root paqm rtt auto" "del dev d0 root"; do
	ip netns exec m tc qdisc $what &
	turn=$!
	sleep 2
	if kill -0 "$turn" 2>/dev/null; then # for ever, and so does all that needs RTNL
		not_ok "RTTs where multicast is forwarded: tc qdisc $what does not return"
		result
	fi
done
ok "RTTs where multicast is forwarded"
ip netns exec m tc qdisc add dev d0 root paqm bandwidth 1mbit feedback icmp rtt auto
ip netns del m # and dies with the qdisc and its sockets
kill "$router"
sleep 1
wait "$media" "$elastic"
check "unload after the namespaces died" unload
no_leaks
result
