#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Classes of sch_paqm: what tc shows of them, other qdiscs in the elastic class, grafting
# under traffic, filters with every verdict, parents above and children below at once.
. "$(dirname "$0")/lib.sh"
load
pair
tc="ip netns exec a tc"

# quiet: nothing crosses a0 but what a test sends, which is counted to the packet. Who knows its
# neighbour asks for nobody and answers nobody; what is known goes with the link.
quiet() {
	ip -n a neigh replace 10.1.0.2 lladdr 02:00:00:00:00:0b dev a0 nud permanent
	ip -n b neigh replace 10.1.0.1 lladdr 02:00:00:00:00:0a dev b0 nud permanent
}
ip netns exec a sysctl -qw net.ipv6.conf.all.disable_ipv6=1
quiet

# refused WORDS COMMAND...: fails, and says WORDS
refused() {
	local words=$1
	shift
	if "$@" >/run/tmp/refused 2>&1; then return 1; fi
	grep -qF -- "$words" /run/tmp/refused || { cat /run/tmp/refused; return 1; }
}

# top_of FILTER: a value of the statistics of the paqm with handle 1:
top_of() { qdiscs | jq -r ".[] | select(.kind==\"paqm\" and .handle==\"1:\") | $1"; }

# class_of CLASSID SED-EXPRESSION: a figure of tc -s class show
class_of() {
	$tc -s class show dev a0 | awk -v id="$1" '
		$1 == "class" { on = $2 == "paqm" && $3 == id } on' | sed -nE "s/$2/\\1/p"
}
sent_of() { class_of "$1" '^ *Sent [0-9]+ bytes ([0-9]+) pkt.*'; }
drops_of() { class_of "$1" '^ *Sent .*dropped ([0-9]+),.*'; }
backlog_of() { class_of "$1" '^ *backlog ([0-9]+)b .*'; }

# Packets and bytes that wait anywhere on a0.
waiting() { qdiscs | jq '[.[] | .qlen + .backlog] | add'; }

# Everything is accounted for: what b0 got is what paqm sent; lengths of classes, qdisc and
# child agree at a moment when traffic runs (the root lock is not held between the reads of
# one dump, so a few packets may move).
lengths_agree() {
	qdiscs | jq -e '([.[] | select(.kind=="paqm")][0]) as $p |
		($p.qlen - $p.media.backlog_packets - $p.elastic.backlog_packets | fabs) <= 4 and
		($p.backlog - $p.media.backlog_bytes - $p.elastic.backlog_bytes | fabs) <= 6000' \
		>/dev/null
}
received() { ip -n b -s -j link show dev b0 | jq '.[0].stats64.rx.packets'; }

# load of both classes; $1 seconds
both() {
	blast --kind rtp --flows 2 --rate 1e6 --seconds "$1" &
	local m=$!
	blast --kind quic --flows 3 --port 8000 --rate 12e6 --size 1400 --seconds "$1"
	wait $m
}

echo "# nothing but the test's packets"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit
# pauses longer than a neighbour is believed
ip netns exec a python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3):
    s.sendto(bytes(100), ("10.1.0.2", 5004))
    time.sleep(50)'
within "packets of three in three minutes" "$(top_of .packets)" 3 3
$tc qdisc del dev a0 root

echo "# what tc shows"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit
check "two classes" test "$($tc class show dev a0 | grep -c '^class paqm 1:[12] ')" = 2
both 2
sleep 1
within "packets of both classes are those of the qdisc" \
	$(($(sent_of 1:1) + $(sent_of 1:2) - $(top_of .packets))) 0 0
within "drops of both classes are those of the qdisc" \
	$(($(drops_of 1:1) + $(drops_of 1:2) - $(top_of .drops))) 0 0
within "elastic was dropped from" "$(drops_of 1:2)" 1 1000000
check "no third class" refused "always there" $tc class add dev a0 parent 1: classid 1:3 paqm
check "classes cannot be deleted" refused "not supported" $tc class del dev a0 classid 1:2
check "media keeps its queue" refused "media keeps its own queue" \
	$tc qdisc add dev a0 parent 1:1 fq_codel
check "no class 1:3 to graft to" refused "" $tc qdisc add dev a0 parent 1:3 fq_codel
check "no class 1:ffff" refused "" $tc qdisc add dev a0 parent 1:ffff fq_codel
check "filters go to the qdisc" refused "parent X:" \
	$tc filter add dev a0 parent 1:1 protocol ip prio 1 matchall classid 1:1
$tc qdisc del dev a0 root

echo "# children of the elastic class"
for child in fq_codel "pfifo limit 50" "bfifo limit 30000" pie codel sfq "fq_pie" \
	"netem delay 20ms limit 1000" "netem delay 5ms 2ms duplicate 10% loss 5% limit 1000" \
	"tbf rate 2mbit burst 3000 limit 30000" "red limit 100k min 10k max 30k avpkt 1000" \
	"prio" "htb" "fq" "cake bandwidth 3mbit" "paqm bandwidth 3mbit"; do
	name=${child%% *}
	$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit
	check "$child" $tc qdisc add dev a0 parent 1:2 handle 20: $child
	check "$name: shown as the leaf" \
		test "$($tc class show dev a0 | grep -c '^class paqm 1:2 .*leaf 20:')" = 1
	got=$(received)
	both 3 &
	b=$!
	sleep 1.5
	check "$name: lengths agree under load" lengths_agree
	wait $b
	sleep 8
	elastic=$(sent_of 1:2)
	both_sent=$(($(sent_of 1:1) + elastic))
	read -r left sent wait lost inner <<<"$(qdiscs | jq -r '
		([.[] | .qlen + .backlog] | add) as $left | .[] | select(.handle == "1:") |
		"\($left) \(.packets) \(.media.sojourn_max_us) " +
		"\(.media.drop_tail_packets + .media.drop_inner_packets) " +
		"\(.elastic.drop_inner_packets)"')"
	within "$name: nothing left" "$left" 0 0
	within "$name: what paqm sent has arrived" $(($(received) - got - sent)) 0 0
	within "$name: packets of the classes are those of the qdisc" $((both_sent - sent)) 0 0
	within "$name: elastic went through it" "$elastic" 300 100000
	within "$name: media waits at most, us" "$wait" 0 20000
	within "$name: no media packet lost" "$lost" 0 0
	within "$name: the law for T is off" "$inner" 0 0
	$tc qdisc del dev a0 root
done

echo "# byte split is kept with a child"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 20mbit nopolice
$tc qdisc add dev a0 parent 1:2 handle 20: fq_codel
blast --kind rtp --flows 10 --rate 30e6 --size 300 --seconds 8 &
m=$!
blast --kind quic --flows 10 --port 8000 --rate 30e6 --size 1400 --seconds 8 &
e=$!
sleep 3
u0=$(top_of .media.sent_bytes) t0=$(top_of .elastic.sent_bytes)
sleep 4
u1=$(top_of .media.sent_bytes) t1=$(top_of .elastic.sent_bytes)
within "media share of the bytes, per cent" \
	"$(awk -v u=$((u1 - u0)) -v t=$((t1 - t0)) 'BEGIN{printf "%.2f", 100*u/(u+t)}')" 48 52
within "shaper exact with a child, per mille" \
	"$(awk -v n=$((u1 - u0 + t1 - t0)) 'BEGIN{printf "%.1f", n*8/4/20e6*1000}')" 990 1010
wait $m $e
$tc qdisc del dev a0 root

echo "# a child that holds packets back leaves no credit for a burst above the bandwidth"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 1mbit
$tc qdisc add dev a0 parent 1:2 handle 20: netem delay 500ms limit 1000
before=$(top_of .elastic.sent_bytes)
blast --kind quic --port 8000 --rate 100e6 --size 1000 --burst 60 --seconds 0.2 &
e=$!
sleep 0.9
within "sent 400 ms after the first could leave, bytes" \
	$(($(top_of .elastic.sent_bytes) - before)) 40000 56000
wait $e
$tc qdisc del dev a0 root

echo "# the elastic class is counted for a quarter of a second after its last packet"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 10mbit
blast --kind rtp --port 9000 --rate 2e6 --size 1000 --seconds 5 &
m=$!
sleep 1
blast --kind quic --port 8000 --rate 6e6 --size 1000 --seconds 2
sleep 0.2
within "flows of an elastic class silent for 0.2 s" "$(top_of .elastic.flows)" 1 1
sleep 0.1
within "the same after 0.3 s" "$(top_of .elastic.flows)" 0 0
before=$(top_of .event_split_rounds)
blast --kind quic --port 8000 --rate 6e6 --size 1000 --seconds 0.1
within "flows of one that is back for 0.1 s" "$(top_of .elastic.flows)" 1 1
within "event rounds by its return" "$(($(top_of .event_split_rounds) - before))" 1 2
wait $m
$tc qdisc del dev a0 root

echo "# changing and deleting the child while it is full"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 2mbit
both 12 &
b=$!
sleep 1
turns=0
for i in $(seq 1 10); do
	$tc qdisc add dev a0 parent 1:2 handle 20: fq_codel || break
	sleep 0.2
	$tc qdisc change dev a0 parent 1:2 handle 20: fq_codel limit 5 || break
	lengths_agree || break
	sleep 0.1
	$tc qdisc replace dev a0 parent 1:2 handle 21: pfifo limit 100 || break
	sleep 0.2
	lengths_agree || break
	$tc qdisc replace dev a0 parent 1:2 handle 22: netem delay 50ms || break
	sleep 0.2
	$tc qdisc change dev a0 root handle 1: paqm bandwidth $((1 + i % 3))mbit || break
	$tc -s class show dev a0 >/dev/null || break
	$tc qdisc del dev a0 parent 1:2 || break
	lengths_agree || break
	sleep 0.2
	turns=$i
done
within "turns of add, change, replace, delete under traffic" "$turns" 10 10
wait $b
sleep 8
within "nothing left after grafting" "$(waiting)" 0 0
within "discarded packets are counted as drops" "$(drops_of 1:2)" 1 1000000
$tc qdisc add dev a0 parent 1:2 handle 20: fq_codel
both 0.5 &
b=$!
sleep 0.3
ip -n a link set a0 down
within "device down: nothing waits" "$(waiting)" 0 0
ip -n a link set a0 up
quiet
wait $b
check "root deleted with a full child" $tc qdisc del dev a0 root

echo "# filters and priorities"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit
$tc filter add dev a0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 9000 classid 1:1
$tc filter add dev a0 parent 1: protocol ip prio 2 flower ip_proto udp dst_port 5004 classid 1:2
$tc filter add dev a0 parent 1: protocol ip prio 3 flower ip_proto udp dst_port 9001 \
	action drop
$tc filter add dev a0 parent 1: protocol ip prio 4 flower ip_proto udp dst_port 9002 \
	action trap
$tc filter add dev a0 parent 1: protocol ip prio 5 flower ip_proto udp dst_port 9003 \
	action mirred egress redirect dev lo
$tc filter add dev a0 parent 1: protocol ip prio 6 flower ip_proto udp dst_port 9004 \
	action skbedit priority 1:1 pipe action continue
$tc filter add dev a0 parent 1: protocol ip prio 7 flower ip_proto udp dst_port 9005 classid 1:7
$tc filter add dev a0 parent 1: protocol ip prio 8 flower ip_proto udp dst_port 9006 \
	classid 1:2 action pass
# steered NAME KIND PORT WHERE: 50 packets reach media, elastic or neither. Now and then one
# send fails because the peer has no such port.
steered() {
	local name=$1 m e where=none
	m=$(sent_of 1:1)
	e=$(sent_of 1:2)
	blast --kind "$2" --port "$3" --rate 800e3 --size 1000 --seconds 0.5
	sleep 0.1
	m=$(($(sent_of 1:1) - m))
	e=$(($(sent_of 1:2) - e))
	if [ $m -ge 45 ] && [ $e -le 2 ]; then where=media; fi
	if [ $e -ge 45 ] && [ $m -le 2 ]; then where=elastic; fi
	if [ $((m + e)) -gt 2 ] && [ $where = none ]; then where=mixed; fi
	if [ $where = "$4" ]; then ok "$name"; else not_ok "$name: media $m, elastic $e"; fi
}
steered "QUIC to media by filter" quic 9000 media
steered "RTP to elastic by filter" rtp 5004 elastic
steered "other RTP is recognised" rtp 5006 media
steered "dropped by a filter" rtp 9001 none
within "and counted" "$(top_of .filter_drop_packets)" 45 50
within "as drops of the qdisc" "$(top_of '.drops - .filter_drop_packets')" 0 0
steered "trapped" rtp 9002 none
steered "redirected" rtp 9003 none
within "both counted as taken" "$(top_of .filter_taken_packets)" 90 100
within "and not as drops" "$(top_of '.drops - .filter_drop_packets')" 0 0
steered "a class that is not there: the recogniser decides" quic 9005 elastic
steered "action pass keeps the class" rtp 9006 elastic
sleep 3
blast --kind rtp --port 5004 --rate 4e6 --seconds 1.5
within "a steered RTP flow is no media flow" "$(top_of .media.flows)" 0 0
within "but an elastic one" "$(top_of .elastic.flows)" 1 1
blast --kind quic --port 9000 --rate 1e6 --seconds 1.5
within "a steered QUIC flow is a media flow" "$(top_of .media.flows)" 1 1
check "filters can go" $tc filter del dev a0 parent 1:
steered "RTP is media again" rtp 5004 media
blast --kind rtp --port 5004 --rate 4e6 --seconds 4 &
b=$!
sleep 1
within "a living flow is a media flow" "$(top_of .media.flows)" 1 1
$tc filter add dev a0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 5004 classid 1:2
sleep 2.5
within "a filter moves it out of media" "$(top_of .media.flows)" 0 0
within "into elastic" "$(top_of .elastic.flows)" 1 1
wait $b
$tc filter del dev a0 parent 1:
# SO_PRIORITY 0x10002 is 1:2
m=$(sent_of 1:2)
ip netns exec a python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10002)
for _ in range(20):
    s.sendto(b"\x80\x60" + bytes(100), ("10.1.0.2", 5004))'
sleep 0.2
within "a priority of 1:2 is elastic" $(($(sent_of 1:2) - m)) 20 20
$tc filter add dev a0 parent 1: protocol all prio 1 matchall action drop
ip netns exec a ethtool -K a0 tso on gso on >/dev/null
ip netns exec b iperf3 -s -1 -p 5201 >/dev/null &
s=$!
sleep 0.2
timeout 5 ip netns exec a iperf3 -c 10.1.0.2 -t 1 >/dev/null 2>&1
check "nothing passes a filter that drops all" test "$(waiting)" = 0
$tc filter del dev a0 parent 1:
timeout 10 ip netns exec a iperf3 -c 10.1.0.2 -t 2 >/dev/null
kill $s 2>/dev/null
wait $s 2>/dev/null
ip netns exec a ethtool -K a0 tso off gso off >/dev/null
check "root deleted with filters" $tc qdisc del dev a0 root

echo "# a parent above, a qdisc below, a packet peeked at by tbf-like parents"
for parent in drr hfsc qfq tbf-qfq htb ets tbf red; do
	if [ $parent = qfq ] && ! "$here/../tc-tests/qfq-holds.sh"; then
		echo "skip qfq / paqm: this kernel's qfq reports a fault when a leaf holds packets back"
		continue
	fi
	for child in fq_codel codel "netem delay 3ms duplicate 20% loss 10% limit 100"; do
		shaper="bandwidth 4mbit" later="bandwidth 3mbit"
		case $parent in
		tbf-qfq) # nothing below qfq holds packets back
			shaper="" later="" child=${child/delay 3ms /}
			$tc qdisc add dev a0 root handle 2: tbf rate 4mbit burst 3000 limit 100000
			$tc qdisc add dev a0 parent 2:1 handle 1: qfq
			$tc class add dev a0 parent 1: classid 1:1 qfq
			$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1 ;;
		drr | qfq)
			$tc qdisc add dev a0 root handle 1: $parent
			$tc class add dev a0 parent 1: classid 1:1 $parent
			$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1 ;;
		hfsc)
			$tc qdisc add dev a0 root handle 1: hfsc default 1
			$tc class add dev a0 parent 1: classid 1:1 hfsc sc rate 4mbit ul rate 4mbit ;;
		htb)
			$tc qdisc add dev a0 root handle 1: htb default 1
			$tc class add dev a0 parent 1: classid 1:1 htb rate 4mbit ;;
		ets) $tc qdisc add dev a0 root handle 1: ets bands 2 quanta 1514 1514 priomap \
			0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ;;
		tbf) $tc qdisc add dev a0 root handle 1: tbf rate 4mbit burst 3000 limit 100000 ;;
		red) $tc qdisc add dev a0 root handle 1: red limit 1mb min 100kb max 300kb \
			avpkt 1000 burst 200 bandwidth 10mbit ;;
		esac
		where="$parent / paqm / ${child%% *}"
		check "$where" $tc qdisc add dev a0 parent 1:1 handle 10: paqm $shaper
		if [ "${child%% *}" = netem ] && ! $tc qdisc add dev a0 parent 10:2 handle 20: \
			$child 2>/dev/null; then
			# some kernels refuse to duplicate below a classful qdisc
			child=${child/duplicate 20% /}
			check "$where without duplicates" \
				$tc qdisc add dev a0 parent 10:2 handle 20: $child
		elif [ "${child%% *}" != netem ]; then
			check "$where: child" $tc qdisc add dev a0 parent 10:2 handle 20: $child
		fi
		got=$(received)
		both 2 &
		b=$!
		sleep 1
		ip -n a link set a0 mtu 500 # codel empties itself while its parent peeks
		sleep 0.3
		ip -n a link set a0 mtu 1500
		$tc qdisc change dev a0 parent 1:1 handle 10: paqm $later limit 20000
		wait $b
		sleep 6
		within "$where: nothing left" "$(waiting)" 0 0
		within "$where: something arrived" $(($(received) - got)) 300 100000
		$tc qdisc del dev a0 root
	done
done
echo "# the budget of requests and control, on a slow link"
# requests COUNT: so many of DNS at once, 542 bytes each
requests() {
	ip netns exec a python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])):
    s.sendto(bytes(500), ("10.1.0.2", 53))' "$1"
	sleep 3
}
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 400kbit
requests 1
e=$(sent_of 1:2)
requests 5
within "a few together ride with media" "$(top_of .small_packets)" 6 6
within "none of them is elastic" $(($(sent_of 1:2) - e)) 0 0
requests 40
within "many together go over it" "$(top_of .small_over_packets)" 34 34
within "and are elastic" $(($(sent_of 1:2) + $(drops_of 1:2) - e)) 34 34
$tc qdisc del dev a0 root
echo "# the example classifier in BPF, loaded by tc"
program=$PAQM_BUILD/userspace/tc-paqm/bpf/media.bpf.o
if [ ! -e "$program" ]; then
	echo "skip BPF classifier: $program was not built (needs clang and libbpf-dev)"
else
	$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit
	check "tc loads it" $tc filter add dev a0 parent 1: protocol all prio 1 bpf obj "$program"
	steered "no rule: QUIC stays elastic" quic 9000 elastic
	steered "no rule: RTP stays media" rtp 5004 media
	# marked DSCP HEX: 20 packets with this DSCP whose payload begins so
	marked() {
		ip netns exec a python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_IP, socket.IP_TOS, int(sys.argv[1]) << 2)
for _ in range(20):
    s.sendto(bytes.fromhex(sys.argv[2]) + bytes(100), ("10.1.0.2", 6000))' "$@"
		sleep 0.2
	}
	m=$(sent_of 1:1)
	marked 46 43000000
	within "QUIC marked EF is media" $(($(sent_of 1:1) - m)) 20 20
	e=$(sent_of 1:2)
	marked 1 80600000
	within "RTP marked LE is elastic" $(($(sent_of 1:2) - e)) 20 20
	if command -v bpftool >/dev/null; then
		check "a port becomes media" \
			bpftool map update name paqm_ports key 0x23 0x28 value 1 0 0 0
		steered "rule by destination port: QUIC is media" quic 9000 media
		check "a port becomes elastic" \
			bpftool map update name paqm_ports key 0x13 0x8c value 2 0 0 0
		steered "rule by destination port: RTP is elastic" rtp 5004 elastic
		check "a rule with a class that is not there" \
			bpftool map update name paqm_ports key 0x13 0x8c value 9 0 0 0
		steered "leaves it to the recogniser" rtp 5004 media
	else
		echo "skip BPF rules by port: bpftool is not installed"
	fi
	$tc filter del dev a0 parent 1:
	steered "without it all is as before" quic 9000 elastic
	$tc qdisc del dev a0 root
fi
echo "# packets of several segments: all taken by a child's filter; such as cannot be cut"
send="ip netns exec a $here/../tc-tests/send.py"
ip -n a link add d0 type dummy
ip -n a link add d1 type dummy
ip -n a link set d0 up
ip -n a link set d1 up
# A verdict that the child sees, for a packet that it took, is no drop for the parent.
$tc qdisc add dev d0 root handle 1: htb default 1
$tc class add dev d0 parent 1: classid 1:1 htb rate 100mbit
$tc qdisc add dev d0 parent 1:1 handle 10: paqm bandwidth 8mbit
$tc qdisc add dev d0 parent 10:2 handle 20: prio
$tc filter add dev d0 parent 20: protocol all prio 1 matchall action mirred egress redirect dev d1
$send d0 --kind tcp --size 14054 --gso 1400 >/dev/null
within "segments that a child took" "$(ip -n a -s -j link show dev d1 | jq '.[0].stats64.tx.packets')" 10 10
within "drops that the parent counted" \
	"$($tc -s -j qdisc show dev d0 | jq '.[] | select(.handle == "1:") | .drops')" 0 0
$tc qdisc del dev d0 root
$tc qdisc add dev d0 root handle 1: paqm bandwidth 8mbit
$send d0 --kind tcp --size 14054 --gso 1400 --options -1 >/dev/null
within "drops of the elastic class" \
	"$($tc -s -j qdisc show dev d0 | jq '.[0].elastic.drop_tail_packets')" 1 1
within "drops of the qdisc" "$($tc -s -j qdisc show dev d0 | jq '.[0].drops')" 1 1
ip -n a link del d0
ip -n a link del d1
check "unload" unload
result
