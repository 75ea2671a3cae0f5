#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# sch_paqm as a whole: classes, byte split, shaper, conservation, parents, GSO,
# policing, ECN, capacity from the device.
. "$(dirname "$0")/lib.sh"
load
pair
tc="ip netns exec a tc"

# Everything that arrived was sent, dropped or is queued.
conserved() {
	qdiscs | jq -e '.[] | select(.kind=="paqm") |
		.media.arrived_bytes + .elastic.arrived_bytes >= .media.sent_bytes + .elastic.sent_bytes
		and .backlog == .media.backlog_bytes + .elastic.backlog_bytes
		and .qlen == .media.backlog_packets + .elastic.backlog_packets' >/dev/null
}

echo "# classification"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 100mbit
blast --kind rtp --flows 3 --rate 1e6 --seconds 1
within "three RTP flows are media" "$(stat_of .media.flows)" 3 3
$tc qdisc del dev a0 root
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 100mbit
blast --kind quic --flows 2 --port 443 --rate 40e6 --seconds 2
within "QUIC is elastic: no media packet" "$(stat_of .media.flows)" 0 0
within "QUIC is elastic: flows counted" "$(stat_of .elastic.flows)" 1 2
$tc qdisc del dev a0 root

echo "# shaper"
# The law drops ARP like all else: lost three times, the sender would be silent for a second.
ip -n a neigh replace 10.1.0.2 lladdr 02:00:00:00:00:0b nud permanent dev a0
for rate in 64 1000 20000; do
	$tc qdisc replace dev a0 root handle 1: paqm bandwidth ${rate}kbit
	blast --kind plain --rate $((rate * 2000)) --size 958 --seconds 20 &
	sleep 3
	# bytes and clock of one dump: the shell may be late
	before=$(stat_of '"\(.elastic.sent_bytes) \(.uptime_ns)"')
	sleep 10
	after=$(stat_of '"\(.elastic.sent_bytes) \(.uptime_ns)"')
	wait $!
	within "shaper exact at $rate kbit/s, per mille" \
		"$(echo "$before $after" | awk -v r="$rate" '{printf "%.2f", ($3-$1)*8e9/($4-$2)/r}')" \
		"$([ "$rate" = 64 ] && echo 980 || echo 995)" "$([ "$rate" = 64 ] && echo 1020 || echo 1005)"
	check "conservation at $rate kbit/s" conserved
	$tc qdisc del dev a0 root
done

echo "# byte split: 10 media of 300 B against 10 elastic of 1400 B, both backlogged"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 20mbit nopolice
blast --kind rtp --flows 10 --rate 30e6 --size 300 --seconds 8 &
m=$!
blast --kind quic --flows 10 --port 8000 --rate 30e6 --size 1400 --seconds 8 &
e=$!
sleep 3
u0=$(stat_of .media.sent_bytes) t0=$(stat_of .elastic.sent_bytes)
sleep 4
u1=$(stat_of .media.sent_bytes) t1=$(stat_of .elastic.sent_bytes)
within "media share of the bytes, per cent" \
	"$(awk -v u=$((u1 - u0)) -v t=$((t1 - t0)) 'BEGIN{printf "%.2f", 100*u/(u+t)}')" 48 52
within "elastic flows counted" "$(stat_of .elastic.flows)" 10 10
wait $m $e
check "conservation after overload" conserved
$tc qdisc del dev a0 root

echo "# an unresponsive flow is policed, two modest ones do not pay"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit police
blast --kind rtp --flows 2 --rate 2e6 --size 1000 --seconds 12 &
m=$!
blast --kind rtp --flows 1 --port 7000 --rate 12e6 --size 1000 --seconds 12 &
e=$!
sleep 8
before=$(stat_of .media.drop_inner_packets)
sleep 4
within "one flow is policed" "$(stat_of .strikes_flows)" 1 1
within "strikes, not random drops, carry the overload" "$(($(stat_of .media.drop_inner_packets) - before))" 0 60
wait $m $e
$tc qdisc del dev a0 root

echo "# parents: nothing is left behind, counters agree"
for parent in prio drr htb hfsc qfq ets red tbf; do
	if [ $parent = qfq ] && ! "$here/../tc-tests/qfq-holds.sh"; then
		echo "skip leaf of qfq: this kernel's qfq reports a fault when a leaf holds packets back"
		continue
	fi
	case $parent in
	prio | ets)
		$tc qdisc add dev a0 root handle 1: $parent bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
		leaf=1:1 ;;
	drr) $tc qdisc add dev a0 root handle 1: drr
		$tc class add dev a0 parent 1: classid 1:1 drr
		$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1
		leaf=1:1 ;;
	qfq) $tc qdisc add dev a0 root handle 1: qfq
		$tc class add dev a0 parent 1: classid 1:1 qfq weight 1
		$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1
		leaf=1:1 ;;
	htb) $tc qdisc add dev a0 root handle 1: htb default 1
		$tc class add dev a0 parent 1: classid 1:1 htb rate 5mbit
		leaf=1:1 ;;
	hfsc) $tc qdisc add dev a0 root handle 1: hfsc default 1
		$tc class add dev a0 parent 1: classid 1:1 hfsc sc rate 5mbit ul rate 5mbit
		leaf=1:1 ;;
	red) $tc qdisc add dev a0 root handle 1: red limit 1mb min 100kb max 300kb avpkt 1000 \
		burst 200 bandwidth 10mbit
		leaf=1:1 ;;
	tbf) $tc qdisc add dev a0 root handle 1: tbf rate 5mbit burst 3000 limit 100000
		leaf=1:1 ;;
	esac
	check "leaf of $parent" $tc qdisc add dev a0 parent $leaf handle 10: paqm bandwidth 4mbit
	blast --kind rtp --flows 2 --rate 4e6 --seconds 1 &
	m=$!
	blast --kind quic --port 8000 --rate 8e6 --size 1400 --seconds 1
	wait $m
	sleep 1
	left=$(qdiscs | jq '[.[] | .qlen + .backlog] | add')
	within "nothing left under $parent" "$left" 0 0
	check "conservation under $parent" conserved
	$tc qdisc del dev a0 root
done

echo "# GSO: a large packet is cut where it would break the target"
parent=qfq # where it takes a shaper below it
"$here/../tc-tests/qfq-holds.sh" || parent=drr
$tc qdisc add dev a0 root handle 1: $parent
$tc class add dev a0 parent 1: classid 1:1 $parent
$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1
$tc qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth 8mbit
ip netns exec a ethtool -K a0 tso on gso on >/dev/null
ip netns exec b iperf3 -s -1 -p 5201 >/dev/null &
s=$!
sleep 0.2
ip netns exec a iperf3 -c 10.1.0.2 -t 3 >/dev/null
wait $s
sleep 1
within "no packet above the MTU was sent: mean bytes" \
	"$(stat_of '.elastic.sent_bytes / .elastic.sent_packets')" 60 1514
within "nothing left after GSO" \
	"$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
ip netns exec a ethtool -K a0 tso off gso off >/dev/null
$tc qdisc del dev a0 root

echo "# ECN: marks instead of drops"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit
ip netns exec a sysctl -qw net.ipv4.tcp_ecn=1
ip netns exec b sysctl -qw net.ipv4.tcp_ecn=1
ip netns exec b iperf3 -s -1 -p 5201 >/dev/null &
s=$!
sleep 0.2
ip netns exec a iperf3 -c 10.1.0.2 -t 5 >/dev/null
wait $s
within "TCP was marked" "$(stat_of .elastic.ecn_mark_packets)" 1 100000
within "and not dropped by the law" "$(stat_of .elastic.drop_inner_packets)" 0 0
$tc qdisc del dev a0 root

echo "# without bandwidth: capacity of the device, no shaper"
check "plain paqm" $tc qdisc replace dev a0 root paqm
within "capacity known" "$(stat_of .capacity_bps)" 1000000 100000000000
blast --kind rtp --rate 5e6 --seconds 1
check "conservation" conserved
$tc qdisc del dev a0 root
ip -n a tuntap add t0 mode tap
ip -n a link set t0 up
$tc qdisc replace dev t0 root paqm
ip netns exec a ethtool -s t0 speed 100 duplex full
ip -n a link set t0 down
ip -n a link set t0 up
within "capacity follows the link's speed" \
	"$($tc -s -j qdisc show dev t0 | jq '.[0].capacity_bps')" 100000000 100000000
ip -n a link del t0
echo "# a seed gives the flows their places, also when it is changed"
send="ip netns exec a $here/../tc-tests/send.py"
ip -n a link add d0 type dummy
ip -n a link set d0 up
overflow() {
	$send d0 --kind rtp --flows 64 --count 640 >/dev/null
	$tc -s -j qdisc show dev d0 | jq '.[0].table_overflow_flows'
}
$tc qdisc add dev d0 root handle 1: paqm bandwidth 1gbit flows 64 seed 4
added=$(overflow)
$tc qdisc del dev d0 root
$tc qdisc add dev d0 root handle 1: paqm bandwidth 1gbit flows 64 seed 7
other=$(overflow)
$tc qdisc change dev d0 root handle 1: paqm seed 4
$tc qdisc change dev d0 root handle 1: paqm weights host
$tc qdisc change dev d0 root handle 1: paqm seed 7
$tc qdisc change dev d0 root handle 1: paqm seed 4
changed=$(overflow)
check "another seed leaves others without a place ($added, $other)" test "$added" != "$other"
within "and the first one the same again" "$((changed - other))" "$added" "$added"

echo "# what is shown can be given again, and has no effect then"
replay="ip netns exec a $here/../tc-tests/rtnl.py"
$tc qdisc replace dev d0 root handle 1: paqm bandwidth 9mbit feedback icmp rtt 30ms \
	feedback-to 10.0.0.0/8,2001:db8::/32 key 7:000102030405060708090a0b0c0d0e0f seed 3
before=$($replay show d0)
check "all options are taken back" $replay replay d0 --handle 1:
check "they are what they were" test "$before" = "$($replay show d0)"
check "and the list is there" test "$($tc -j qdisc show dev d0 | jq -c '.[0].options.feedback_to')" = \
	'["10.0.0.0/8","2001:db8::/32"]'
$tc qdisc change dev d0 root handle 1: paqm feedback-to any
check "without a list, too" $replay replay d0 --handle 1:
check "tc shows none" test "$($tc -j qdisc show dev d0 | jq -c '.[0].options.feedback_to')" = '[]'
ip -n a link del d0
check "unload" unload
result
