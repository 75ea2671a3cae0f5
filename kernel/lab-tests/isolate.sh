#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Isolation of flows: who keeps to his rate does not pay for who does not, and a short request
# does not wait for a long transfer; nothing is reordered; flow queues are accounted for below
# every parent, while options change, and when they are thrown away.
. "$(dirname "$0")/lib.sh"
load
pair
tc="ip netns exec a tc"
ip -n a neigh replace 10.1.0.2 lladdr 02:00:00:00:00:0b nud permanent dev a0

# Everything that arrived was sent, dropped or is queued.
conserved() {
	qdiscs | jq -e '.[] | select(.kind=="paqm") |
		.media.arrived_bytes + .elastic.arrived_bytes >= .media.sent_bytes + .elastic.sent_bytes
		and .backlog == .media.backlog_bytes + .elastic.backlog_bytes
		and .qlen == .media.backlog_packets + .elastic.backlog_packets
		and .media.backlog_bytes >= .over_backlog_bytes' >/dev/null
}

# listen PORT...: per port what came, what came out of order or marked, and the longest time that
# a packet was under way, us, until it is told to stop; from the last SIGUSR1 on. And of the
# first one when each packet came, us, and how long it had been under way
listen() {
	ip netns exec b python3 -c '
import selectors, signal, socket, struct, sys, json, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
ports = [int(p) for p in sys.argv[1:]]
came, late, last, marked, most = counts = [{p: 0 for p in ports} for _ in range(5)]
first = {p: 0 for p in ports}
ways = []
signal.signal(signal.SIGUSR1, lambda *_: [c.update(dict.fromkeys(ports, 0)) for c in counts])
wait = selectors.DefaultSelector()
for p in ports:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
    s.bind(("", p))
    wait.register(s, selectors.EVENT_READ, p)
try:
    while True:
        for key, _ in wait.select():
            data, extra, _, _ = key.fileobj.recvmsg(2048, 64)
            seq = struct.unpack_from("!H", data, 2)[0]
            now = time.monotonic()
            way = round((now - struct.unpack_from("!d", data, 12)[0]) * 1e6)
            most[key.data] = max(most[key.data], way)
            first[key.data] = first[key.data] or round(now * 1e6)
            if key.data == ports[0]:
                ways.append((round(now * 1e6), way))
            came[key.data] += 1
            late[key.data] += came[key.data] > 1 and (seq - last[key.data]) % 65536 > 32768
            marked[key.data] += any(e[2][0] & 3 == 3 for e in extra)
            last[key.data] = seq
finally:
    print(json.dumps({"came": came, "late": late, "marked": marked, "most": most,
                      "first": first, "ways": ways}))' "$@" >/run/tmp/heard &
	listener=$!
	sleep 0.3
}

# heard FIELD PORT
heard() {
	jq ".$1[\"$2\"]" /run/tmp/heard
}

# stop_listening: what is under way may come
stop_listening() {
	sleep 1
	kill "$listener"
	wait "$listener"
}

# mixture SECONDS [ARGS]: two flows of 0.4 Mbit/s and one of 12, with those arguments
mixture() {
	local seconds=$1
	shift
	blast --kind rtp --flows 2 --rate 0.8e6 --seconds "$seconds" &
	modest=$!
	blast --kind rtp --flows 1 --port 7000 --rate 12e6 --seconds "$seconds" "$@" &
	flood=$!
}

echo "# two modest flows beside a flood"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit
listen 5004 5005 7000
mixture 8
sleep 6
check "conservation during the flood" conserved
within "one flow does not follow" "$(stat_of .deaf_flows)" 1 1
within "it waits in a queue of its own" "$(stat_of .over_queues)" 1 1
within "nothing is dropped from the common queue" \
	"$(stat_of '.media | .drop_inner_packets + .drop_tail_packets')" 0 0
$tc -s class show dev a0 >/run/tmp/flows
within "class show: who does not follow" "$(grep -c 'does not follow' /run/tmp/flows)" 1 1
within "class show: who does" "$(grep -c '  follows;' /run/tmp/flows)" 2 2
setpriv --bounding-set -net_admin --inh-caps -net_admin $tc -s class show dev a0 >/run/tmp/public
within "class show, not for the administrator: flows" \
	"$(grep -c '^class paqm 1:10[1-9]' /run/tmp/public)" 3 20
within "class show, not for the administrator: addresses" "$(grep -c ' udp ' /run/tmp/public)" 0 0
within "class show: it hears by loss" "$(grep -c 'does not follow; hears by loss' /run/tmp/flows)" 1 1
wait $modest $flood
stop_listening
within "a modest flow loses nothing" "$(heard came 5004)" 399 401
within "nor does the other" "$(heard came 5005)" 399 401
for port in 5004 5005 7000; do
	within "nothing out of order on port $port" "$(heard late $port)" 0 0
done
within "modest packets wait at most so many us" "$(stat_of .media.sojourn_p99_us)" 0 12000
$tc qdisc del dev a0 root

# Bursts that just exceed the rate: each time its queue was empty again, and it was served first.
echo "# two flows above their rate, one by little: a part each, not two for one of them"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit
listen 7000 8000
blast --kind rtp --flows 1 --port 7000 --rate 12e6 --seconds 12 &
much=$!
blast --kind rtp --flows 1 --port 8000 --rate 2.2e6 --seconds 12 --burst 4 &
little=$!
sleep 3 # one may begin before the other, and has all until then
kill -USR1 "$listener"
sleep 8 # what still waits at the end is not of interest
stop_listening
wait $much $little
within "of what both have the one above by little has, per mille" \
	$(($(heard came 8000) * 1000 / ($(heard came 7000) + $(heard came 8000)))) 470 530
for port in 7000 8000; do
	within "nothing out of order on port $port" "$(heard late $port)" 0 0
done
$tc qdisc del dev a0 root

# Flows that were below their rate come back to it with full buckets, and then send as much as the
# link takes: the queue that their bursts leave would stand.
echo "# three flows come back to their rate at once"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit
listen 5004 7000 7001 7002
blast --kind rtp --flows 1 --rate 1.91e6 --seconds 6 &
others=$!
for port in 7000 7001 7002; do
	blast --kind rtp --flows 1 --port $port --rate 1.91e6 --seconds 3 --quiet 4 --back 5 &
	others+=" $!"
done
sleep 4.3
kill -USR1 "$listener"
sleep 0.5
within "bytes that stand in the common queue half a second later" \
	"$(stat_of '.media.backlog_bytes - .over_backlog_bytes')" 0 5000
stop_listening
wait $others
within "one that sends evenly waits at most so many us" "$(heard most 5004)" 0 7500
for port in 5004 7000 7001 7002; do
	within "nothing out of order on port $port" "$(heard late $port)" 0 0
done
$tc qdisc del dev a0 root

# Two tenths of all packets are sent in a preview, the others find his queue short.
echo "# media alone: previews of where a fair rate ends"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 16mbit feedback icmp
listen 7000 5004
others=
for port in 5004 5005 5006; do
	blast --kind rtp --flows 1 --port $port --rate 3.7e6 --seconds 8 &
	others+=" $!"
done
blast --kind rtp --flows 1 --port 7000 --rate 4.2e6 --seconds 8 & # which they leave
others+=" $!"
sleep 3
kill -USR1 "$listener"
wait $others
stop_listening
within "packets beyond the rate" "$(stat_of .over_packets)" 2000 100000
# us: the longest of each half second at least, the longest of all, the median
jq '.first["7000"] as $first | [.ways[] | select(.[0] > $first + 3e6 and .[0] < $first + 7.5e6)] |
	{least: ([group_by((.[0] - $first) / 5e5 | floor)[] | map(.[1]) | max] | min),
	 most: (map(.[1]) | max), median: (map(.[1]) | sort | .[length / 2 | floor])}' \
	/run/tmp/heard >/run/tmp/waits
within "in each half second he waits at least so many us" "$(jq .least /run/tmp/waits)" 6000 20000
within "but never more than" "$(jq .most /run/tmp/waits)" 6000 25000
within "mostly so many" "$(jq .median /run/tmp/waits)" 0 4000
within "who keeps his rate waits at most" "$(heard most 5004)" 0 4000
for port in 7000 5004; do
	within "nothing out of order on port $port" "$(heard late $port)" 0 0
done
$tc qdisc del dev a0 root

# A queue that has stood since the last preview is that of one who did not understand it.
echo "# a preview that did not help is followed by a longer one"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 16mbit feedback icmp
others=
for port in 5004 5005 5006; do
	blast --kind rtp --flows 1 --port $port --rate 3.6e6 --seconds 10 &
	others+=" $!"
done
blast --kind rtp --flows 1 --port 7000 --rate 6e6 --seconds 10 &
others+=" $!"
sleep 4
before=$(stat_of .media.sent_bytes)
sleep 5
within "of the link he has what he is entitled to most of the time, per mille" \
	$((($(stat_of .media.sent_bytes) - before) * 8 / 5 / 16000)) 970 986
wait $others
$tc qdisc del dev a0 root

# Who follows gets a little less while others find their rate by the queue.
echo "# room for those who seek their rate by the queue"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 16mbit feedback icmp
blast --kind rtp --flows 1 --port 5004 --rate 0.5e6 --seconds 58 &
others=$!
sleep 3.5
before=$(stat_of .fair_rate_bps)
blast --kind rtp --flows 2 --port 7000 --rate 30e6 --seconds 4
sleep 4
within "what is told when they have gone, per mille of before" \
	$(($(stat_of .fair_rate_bps) * 1000 / before)) 986 993
sleep 43
within "and when they have not come back for long" \
	$(($(stat_of .fair_rate_bps) * 1000 / before)) 999 1001
wait $others
$tc qdisc del dev a0 root

echo "# the same below parents that know the rate: a packet is there whenever they ask"
for parent in htb hfsc tbf-drr tbf-qfq; do
	case $parent in
	htb)
		$tc qdisc add dev a0 root handle 1: htb default 1
		$tc class add dev a0 parent 1: classid 1:1 htb rate 16mbit ceil 16mbit burst 1600 \
			cburst 1600 quantum 1514 ;;
	hfsc)
		$tc qdisc add dev a0 root handle 1: hfsc default 1
		$tc class add dev a0 parent 1: classid 1:1 hfsc sc rate 16mbit ul rate 16mbit ;;
	tbf-*)
		$tc qdisc add dev a0 root handle 2: tbf rate 16mbit burst 1600 limit 100000
		$tc qdisc add dev a0 parent 2:1 handle 1: "${parent#tbf-}"
		$tc class add dev a0 parent 1: classid 1:1 "${parent#tbf-}"
		$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1 ;;
	esac
	$tc qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth auto
	blast --kind quic --port 8000 --flows 4 --rate 60e6 --size 1200 --seconds 4 # it is measured
	sleep 1
	blast --kind rtp --flows 3 --port 5004 --rate 11.1e6 --seconds 5 &
	others=$!
	blast --kind rtp --flows 1 --port 7000 --rate 4.2e6 --seconds 5
	wait $others
	within "$parent: packets beyond the rate" "$(stat_of .over_packets)" 100 100000
	within "$parent finds it non-work-conserving, times" \
		"$(dmesg | grep -c 'non-work-conserving')" 0 0
	$tc qdisc del dev a0 root
done

# Who hears nothing is shown what is to come: his queue grows for a tenth of a second, as fast as if
# the share had fallen already, and is short again soon.
echo "# media's share falls: a preview of it"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 8mbit feedback icmp
listen 7000 8000
blast --kind rtp --flows 1 --port 7000 --rate 5e6 --seconds 6 &
others=$!
sleep 3
blast --kind quic --port 8000 --rate 12e6 --seconds 3 &
others+=" $!"
wait $others
stop_listening
# when a packet had waited for more than 12 ms for the first time, us, and what was the least
# within 0.2 s after that, per mille of the longest
jq '[.ways[] | select(.[1] > 12000)][0][0] as $long | .first["8000"] as $first |
	{long: ($long - $first),
	 least: ([.ways[] | select(.[0] > $long and .[0] < $long + 2e5) | .[1]]
		| 1000 * min / max | round)}' \
	/run/tmp/heard >/run/tmp/preview
within "he waits for 12 ms so many us after the first elastic packet" \
	"$(jq .long /run/tmp/preview)" 150000 1000000
within "and soon only a part of that again, per mille" "$(jq .least /run/tmp/preview)" 0 400
within "nothing out of order on port 7000" "$(heard late 7000)" 0 0
$tc qdisc del dev a0 root

echo "# what is ECN-capable is marked"
for tos in 2 1; do
	$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit
	listen 5004 5005 7000
	mixture 6 --tos $tos --rate 8e6 --flows 2
	wait $modest $flood
	stop_listening
	within "ECT($((tos % 2))): marks" "$(stat_of .over_mark_packets)" 3 5000
	within "ECT($((tos % 2))): as they arrive" "$(heard marked 7000)" 1 5000
	within "ECT($((tos % 2))): modest flows are not marked" "$(heard marked 5004)" 0 0
	$tc qdisc del dev a0 root
done

echo "# strangers: many short flows are one"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit
listen 5004 5005
blast --kind rtp --flows 2 --rate 0.8e6 --seconds 6 &
modest=$!
sleep 2
blast --kind rtp --flows 800 --short 4 --port 9000 --rate 8e6 --size 1000 --seconds 3
within "packets of flows that are not known wait apart" "$(stat_of .over_stranger_packets)" 100 1000000
within "nothing is dropped from the common queue beside them, but a packet or two" \
	"$(stat_of '.media | .drop_inner_packets + .drop_tail_packets')" 0 3
within "they do not come to stay" "$(stat_of .newcomers_stay)" 0 0.2
within "the fair rate is not cut for them" "$(stat_of .fair_rate_bps)" 1000000 4000000
wait $modest
stop_listening
within "a modest flow loses nothing beside them" "$(heard came 5004)" 299 301
$tc qdisc del dev a0 root

# crowd SECONDS: twenty flows of one host, each of a tenth of the link, beside one flow of another
# that would take all of it
crowd() {
	blast --kind rtp --source 10.1.0.11 --flows 20 --port 7000 --rate 8e6 --seconds "$1" &
	flood=$!
	blast --kind rtp --source 10.1.0.12 --flows 1 --port 5004 --rate 8e6 --seconds "$1" &
	modest=$!
}

echo "# hosts are equal: twenty flows of one beside one of another"
ip -n a addr add 10.1.0.11/24 dev a0
ip -n a addr add 10.1.0.12/24 dev a0
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit weights host feedback icmp
twenty=$(seq 7000 7019)
crowd 14
sleep 4 # until all are known
listen $twenty 5004
sleep 8 # what still waits at the end is not of interest
check "conservation while a host's flows share a queue" conserved
within "they have one, and the other flow another" "$(stat_of .over_queues)" 1 2
fair=$(stat_of .fair_rate_bps)
within "the fair rate is that of a host" "$fair" 1800000 2200000
$tc -s class show dev a0 >/run/tmp/flows
# parts SOURCE: least and largest that a flow from there may send or was told, per mille of that
parts() {
	grep -A 1 "$1:" /run/tmp/flows | awk -v fair="$fair" '
		function bps(s) { return s * (s ~ /Mbit/ ? 1e6 : s ~ /Kbit/ ? 1e3 : 1) * 1000 / fair }
		function take(v) { if (!n++ || v < low) low = v; if (v > high) high = v }
		{ for (i = 1; i < NF; i++) if ($i == "share" || $i == "told") take(bps($(i + 1))) }
		END { print low, high }'
}
read -r least most <<<"$(parts 10.1.0.11)"
within "class show: one of twenty may send, and is told, per mille of it, at least" "$least" 40 51
within "and at most" "$most" 40 51
read -r least most <<<"$(parts 10.1.0.12)"
within "one that is alone at least" "$least" 900 1100
within "and at most" "$most" 900 1100
stop_listening
wait $modest $flood
within "the twenty have half, per mille" "$(jq '1000 * (1 - .came["5004"] / (.came | add)) | round' \
	/run/tmp/heard)" 470 530
within "nothing out of order" "$(jq '.late | add' /run/tmp/heard)" 0 0
lost=$(grep -A 2 10.1.0.11: /run/tmp/flows | grep -o 'lost [0-9]*' | awk '{ n += $2 } END { print n }')
within "class show: losses of flows that share a queue" "$lost" 100 100000
sleep 1
within "nothing is left" "$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0

echo "# flows and hosts by turns, under traffic"
listen $twenty 5004
crowd 9
sleep 2
for word in flow host flow host flow; do
	$tc qdisc change dev a0 root paqm weights $word
	sleep 1.2
	check "$word: conservation" conserved
done
wait $modest $flood
stop_listening
within "nothing out of order" "$(jq '.late | add' /run/tmp/heard)" 0 0
within "nothing is left" "$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
$tc qdisc change dev a0 root paqm weights host
crowd 3
sleep 2.5
check "conservation" conserved
ip -n a link set a0 down
within "a device that goes down throws all away" \
	"$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
ip -n a link set a0 up
ip -n a neigh replace 10.1.0.2 lladdr 02:00:00:00:00:0b nud permanent dev a0
wait $modest $flood
crowd 2
sleep 1.8
check "deleted while hosts' packets wait" $tc qdisc del dev a0 root
wait $modest $flood
ip -n a addr del 10.1.0.11/24 dev a0
ip -n a addr del 10.1.0.12/24 dev a0

echo "# below every parent"
for parent in prio drr htb hfsc qfq ets red tbf netem; do
	if [ $parent = qfq ] && ! "$here/../tc-tests/qfq-holds.sh"; then
		echo "skip leaf of qfq: this kernel's qfq reports a fault when a leaf holds packets back"
		continue
	fi
	leaf=1:1
	case $parent in
	prio | ets)
		$tc qdisc add dev a0 root handle 1: $parent bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ;;
	drr) $tc qdisc add dev a0 root handle 1: drr
		$tc class add dev a0 parent 1: classid 1:1 drr
		$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1 ;;
	qfq) $tc qdisc add dev a0 root handle 1: qfq
		$tc class add dev a0 parent 1: classid 1:1 qfq weight 1
		$tc filter add dev a0 parent 1: protocol all prio 1 matchall classid 1:1 ;;
	htb) $tc qdisc add dev a0 root handle 1: htb default 1
		$tc class add dev a0 parent 1: classid 1:1 htb rate 5mbit ;;
	hfsc) $tc qdisc add dev a0 root handle 1: hfsc default 1
		$tc class add dev a0 parent 1: classid 1:1 hfsc sc rate 5mbit ul rate 5mbit ;;
	red) $tc qdisc add dev a0 root handle 1: red limit 1mb min 100kb max 300kb avpkt 1000 \
		burst 200 bandwidth 10mbit ;;
	tbf) $tc qdisc add dev a0 root handle 1: tbf rate 5mbit burst 3000 limit 100000 ;;
	netem) $tc qdisc add dev a0 root handle 1: netem delay 3ms ;;
	esac
	check "leaf of $parent" $tc qdisc add dev a0 parent $leaf handle 10: paqm bandwidth 4mbit
	mixture 2
	blast --kind quic --port 8000 --rate 4e6 --size 1400 --seconds 2 &
	elastic=$!
	sleep 1.5
	check "conservation under $parent with overflow queues" conserved
	within "packets beyond the fair rate under $parent" "$(stat_of .over_packets)" 100 100000
	$tc qdisc change dev a0 parent $leaf handle 10: paqm noisolate
	sleep 0.2
	$tc qdisc change dev a0 parent $leaf handle 10: paqm isolate
	wait $modest $flood $elastic
	sleep 1
	within "nothing left under $parent" "$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
	check "conservation under $parent" conserved
	mixture 1.5
	sleep 1
	check "deleted from $parent while packets wait" $tc qdisc del dev a0 root
	wait $modest $flood
done

echo "# thrown away, and short of room"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit limit 20000
mixture 3
sleep 2
within "they take half of the limit at most" "$(stat_of .over_backlog_bytes)" 1 10000
check "conservation at the limit" conserved
ip -n a link set a0 down
within "a device that goes down throws them away" "$(stat_of .over_backlog_packets)" 0 0
within "and leaves no length" "$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
ip -n a link set a0 up
ip -n a neigh replace 10.1.0.2 lladdr 02:00:00:00:00:0b nud permanent dev a0
wait $modest $flood
mixture 2
wait $modest $flood
sleep 1
within "goes on afterwards" "$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
$tc qdisc del dev a0 root

# transfer SECONDS [ARGS]: an elastic flow of three times the link, with those arguments, and a
# thin one of 0.4 Mbit/s
transfer() {
	local seconds=$1
	shift
	blast --kind quic --port 8000 --rate 12e6 --seconds "$seconds" "$@" &
	flood=$!
	blast --kind quic --port 8010 --rate 0.4e6 --size 500 --seconds "$seconds" &
	modest=$!
}

echo "# elastic flows: a thin one beside one that takes all it can"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit
listen 8000 8010
transfer 6
sleep 5
check "elastic queues: conservation" conserved
wait $modest $flood
stop_listening
within "the thin one loses nothing" "$(heard came 8010)" 599 601
within "and waits at most so many us" "$(heard most 8010)" 0 15000
within "the other has the rest, packets" "$(heard came 8000)" 2400 2850
for port in 8000 8010; do
	within "nothing out of order on port $port" "$(heard late $port)" 0 0
done
within "its own queue is shortened" "$(stat_of .elastic.drop_inner_packets)" 10 10000
$tc qdisc del dev a0 root

echo "# where the elastic class is short of room who comes finds some"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit elastic-limit 20000
listen 8000 8010
transfer 4
wait $modest $flood
stop_listening
within "the thin one loses nothing" "$(heard came 8010)" 399 401
within "the other loses by the limit" "$(stat_of .elastic.drop_tail_packets)" 1000 100000
$tc qdisc del dev a0 root

echo "# elastic packets that are ECN-capable are marked"
for tos in 2 1; do
	$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit
	listen 8000 8010
	transfer 4 --tos $tos
	wait $modest $flood
	stop_listening
	within "TOS $tos: marked" "$(heard marked 8000)" 5 10000
	within "TOS $tos: as the statistics say" \
		"$(($(stat_of .elastic.ecn_mark_packets) - $(heard marked 8000)))" 0 1
	within "TOS $tos: nobody else is" "$(heard marked 8010)" 0 0
	within "TOS $tos: the limit drops, not the AQM" "$(stat_of .elastic.drop_inner_packets)" 0 0
	$tc qdisc del dev a0 root
done

echo "# the elastic class with and without flow queues while packets wait"
$tc qdisc replace dev a0 root handle 1: paqm bandwidth 4mbit
listen 8000 8010
transfer 8
for word in noisolate isolate noisolate isolate noisolate; do
	sleep 1.2
	$tc qdisc change dev a0 root paqm $word
	check "$word: conservation" conserved
done
wait $modest $flood
stop_listening
for port in 8000 8010; do
	within "nothing out of order on port $port" "$(heard late $port)" 0 0
done
within "nothing is left" "$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
transfer 2
sleep 1
ip -n a link set a0 down
within "a device that goes down throws all away" \
	"$(qdiscs | jq '[.[] | .qlen + .backlog] | add')" 0 0
ip -n a link set a0 up
ip -n a neigh replace 10.1.0.2 lladdr 02:00:00:00:00:0b nud permanent dev a0
wait $modest $flood
$tc qdisc del dev a0 root

echo "# a capacity that is wrong"
# the device below is slower than believed: queues stay as long as they should be there
$tc qdisc add dev a0 root handle 1: tbf rate 4mbit burst 3000 limit 100000
$tc qdisc add dev a0 parent 1:1 handle 10: paqm # believes in 1 Gbit/s or more
blast --kind quic --port 8000 --rate 8e6 --size 1400 --seconds 8 &
elastic=$!
sleep 6
within "believed too high: elastic backlog" "$(stat_of .elastic.backlog_bytes)" 1 60000
wait $elastic
$tc qdisc del dev a0 root
unload
check "unloads" test ! -e /sys/module/sch_paqm
result
