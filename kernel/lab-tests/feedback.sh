#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Messages and echo requests as hosts see them: who is told and who is not, IPv4 and IPv6,
# prefixes, the budget and its division, RTTs that are measured and RTTs that are made up,
# namespaces and modules that go while requests are under way. Meant for the debug kernel:
# the caller fails on any report.
. "$(dirname "$0")/lib.sh"
peer="$here/feedback.py"

# Hosts s1, s2, s3 -- router r -- receiver v. RTT between r and sN: 20, 100, 40 ms.
network() {
	local n delay
	ip netns add r
	ip netns add v
	ip netns exec r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	ip link add rv netns r address 02:00:00:00:00:10 type veth \
		peer name vr netns v address 02:00:00:00:00:11
	address r rv 10.0.9.1/24 2001:db8:9::1/64
	address v vr 10.0.9.2/24 2001:db8:9::2/64
	ip -n v route add default via 10.0.9.1
	ip -n v -6 route add default via 2001:db8:9::1
	for n in 1 2 3; do
		delay=$(echo "10 50 20" | cut -d' ' -f$n)ms
		ip netns add s$n
		ip link add rs$n netns r address 02:00:00:00:01:0$n type veth \
			peer name sr netns s$n address 02:00:00:00:02:0$n
		address r rs$n 10.0.$n.1/24 2001:db8:$n::1/64
		address s$n sr 10.0.$n.2/24 2001:db8:$n::2/64
		ip -n s$n route add default via 10.0.$n.1
		ip -n s$n -6 route add default via 2001:db8:$n::1
		ip netns exec r tc qdisc add dev rs$n root netem delay "$delay" limit 100000
		ip netns exec s$n tc qdisc add dev sr root netem delay "$delay" limit 100000
	done
}

# address NAMESPACE DEVICE IPV4 IPV6
address() {
	ip -n "$1" link set lo up
	ip -n "$1" link set "$2" up
	ip -n "$1" addr add "$3" dev "$2"
	ip -n "$1" addr add "$4" dev "$2" nodad
	ip netns exec "$1" ethtool -K "$2" tso off gso off gro off >/dev/null
}

# host N COMMAND ARGS: feedback.py in the namespace of host N
host() {
	local n=$1
	shift
	ip netns exec "s$n" python3 "$peer" "$@"
}

# watch N SECONDS [ARGS]: what host N is told, into /run/tmp/N
watch() {
	local n=$1 seconds=$2
	shift 2
	host "$n" watch --seconds "$seconds" --own "10.0.$n.2" --own "2001:db8:$n::2" "$@" \
		>"/run/tmp/$n"
}

told() { jq -r "$2" "/run/tmp/$1"; }

rtc() { ip netns exec r tc "$@"; }

stat() { rtc -s -j qdisc show dev rv | jq -r "first(.[] | select(.kind==\"paqm\")) | $1"; }

# inject SOURCE [DESTINATION]: media with this source into the queue of rv
inject() {
	ip netns exec r python3 "$peer" inject --dev rv --mac 02:00:00:00:00:11 \
		--to "${2:-2001:db8:9::2}" --source "$1" --count 150
}

# A new queue, which has no patience with any host to lose yet.
fresh() {
	rtc qdisc del dev rv root
	rtc qdisc add dev rv root handle 1: paqm bandwidth 20mbit feedback icmp rtt auto
}

load
network

echo "# notices over both versions, RTTs of 20 and 100 ms"
rtc qdisc replace dev rv root handle 1: paqm bandwidth 20mbit feedback icmp rtt auto
# they are released a moment later
sockets() { sleep 0.1; ip netns exec r cat /proc/net/raw /proc/net/raw6 | grep -c ' 0\{8\}:\| 0\{32\}:\|:0001\|:003A'; }
jobs=()
for n in 1 2; do
	for to in 10.0.9.2 2001:db8:9::2; do
		host $n send --to $to --seconds 15 &
		jobs+=($!)
	done
	watch $n 15 &
	jobs+=($!)
done
sleep 12
within "the farthest source, us" "$(stat .rtt_max_us)" 100000 104000
within "the mean of two at 20 and two at 100 ms, us" "$(stat .rtt_mean_us)" 60000 63000
within "sources that answered" "$(stat .rtt_samples)" 4 4
within "the outer loop waits for the farthest, us" "$(stat .skip_us)" 100000 104000
within "unknown replies" "$(stat .echo_unknown)" 0 0
wait "${jobs[@]}"
for n in 1 2; do
	within "host $n: messages over IPv4" "$(told $n .v4)" 20 300
	within "host $n: messages over IPv6" "$(told $n .v6)" 20 300
	within "host $n: messages that prove nothing" "$(told $n .wrong)" 0 0
	within "host $n: echo requests" "$(told $n '.echo4 + .echo6')" 10 40
	check "host $n: they came from the router" \
		[ "$(told $n '.sources | join(" ")')" = "10.0.$n.1 2001:db8:$n::1" ]
done
within "every request was answered or is under way" \
	"$(stat '.echo_sent - .echo_answered')" 0 1
within "all that was owed was told" "$(stat '.notices_owed - .notices_sent')" 0 3
for n in 1 2; do
	check "host $n: no message is tagged" [ "$(told $n '.order | join(" ")')" = none ]
done

echo "# tags, over both versions, and keys that change while messages are under way"
old=7:000102030405060708090a0b0c0d0e0f
new=65535:f0e1d2c3b4a5968778695a4b3c2d1e0f
sleep 1 # messages without a tag that are under way arrive
rtc qdisc change dev rv root handle 1: paqm key $old
jobs=()
for to in 10.0.9.2 2001:db8:9::2; do
	host 1 send --to $to --seconds 12 &
	jobs+=($!)
done
watch 1 12 --key $old --key $new &
jobs+=($!)
sleep 4
rtc qdisc change dev rv root handle 1: paqm key $new
sleep 4
shown=$(stat .options.key)
rtc qdisc change dev rv root handle 1: paqm key none
wait "${jobs[@]}"
check "the old key, then the new one, then none, with no gap" \
	[ "$(told 1 '.order | join(" ")')" = "7 65535 none" ]
within "messages with the old key" "$(told 1 '.tags."7"')" 20 100
within "messages with the new key" "$(told 1 '.tags."65535"')" 20 100
within "over IPv6" "$(told 1 .v6)" 30 200
within "messages that prove nothing" "$(told 1 .wrong)" 0 0
within "the id is shown" "$shown" 65535 65535
rtc qdisc change dev rv root handle 1: paqm key $new
check "the key is shown nowhere" [ -z "$({
	rtc -s -d qdisc show dev rv
	rtc -s -d -j qdisc show dev rv
	rtc -s class show dev rv
	ip netns exec r "$here/../tc-tests/rtnl.py" show rv
} | grep -i "${new#*:}")" ]
rtc qdisc change dev rv root handle 1: paqm key none

echo "# a flow joins, and after a silence anew: a round of its own, which tells it to hold"
rtc qdisc del dev rv root
rtc qdisc add dev rv root handle 1: paqm bandwidth 20mbit feedback icmp law ecf
for time in first second; do
	before=$(stat .event_flow_rounds)
	watch 1 3 &
	w=$!
	host 1 send --to 10.0.9.2 --seconds 2
	wait $w # a second of silence more
	within "$time: rounds because it joins" "$(($(stat .event_flow_rounds) - before))" 1 1
	within "$time: relative value of its first message" "$(told 1 '.values[0]')" 1 1
	# alpha of what is free and 31 kbit/s for the empty queue, on the IP layer: 528 bytes of 542
	within "$time: of the next ones, an increase" "$(told 1 '.values[1:] | min')" 8.7e6 9.0e6
	within "$time: messages" "$(told 1 .v4)" 5 12
done
fresh

echo "# who is quiet is asked ever more rarely, and does not count"
ip netns exec s3 sysctl -qw net.ipv4.icmp_echo_ignore_all=1
host 3 send --to 10.0.9.2 --rate 8e4 --seconds 45 &
jobs=($!)
host 1 send --to 10.0.9.2 --rate 8e4 --seconds 45 &
jobs+=($!)
watch 3 45 &
jobs+=($!)
watch 1 45 &
jobs+=($!)
sleep 43
within "only the source that answers counts" "$(stat .rtt_samples)" 1 1
within "its RTT, us" "$(stat .rtt_max_us)" 20000 22000
wait "${jobs[@]}"
within "requests to the quiet host in 45 s" "$(told 3 .echo4)" 2 6
within "requests to the other" "$(told 1 .echo4)" 18 40

echo "# replies that nobody asked for like this"
ip -n s3 addr add 10.0.3.7/24 dev sr
for how in "--how nonce" "--how seq" "--source 10.0.3.7"; do
	fresh
	host 3 send --to 10.0.9.2 --rate 8e4 --seconds 60 &
	s=$!
	# shellcheck disable=SC2086 # words
	host 3 answer $how --seconds 62 >/run/tmp/answer
	wait $s
	forged=$(jq .replied /run/tmp/answer)
	within "host 3 was asked ($how)" "$forged" 3 20
	within "false replies were counted ($how)" "$(stat .echo_unknown)" "$forged" "$forged"
	within "and believed by nobody ($how)" "$(stat .rtt_samples)" 0 0
done
fresh
host 3 send --to 10.0.9.2 --rate 8e4 --seconds 40 &
s=$!
host 3 answer --delay 3 --seconds 45 >/run/tmp/answer
wait $s
within "an answer after 3 s is late: no measurement" "$(stat .rtt_samples)" 0 0
within "the host was asked" "$(jq .asked /run/tmp/answer)" 3 20
within "its answers are not unknown" "$(stat .echo_unknown)" 0 0
within "but late" "$(stat .echo_late)" 3 20
fresh
ip netns exec s3 sysctl -qw net.ipv4.icmp_echo_ignore_all=0
host 3 send --to 10.0.9.2 --rate 8e4 --seconds 30 &
s=$!
host 3 answer --seconds 29 >/run/tmp/answer
within "true answers again, us" "$(stat .rtt_max_us)" 40000 42000
wait $s
within "every second answer to one request counted as unknown" \
	"$(stat .echo_unknown)" "$(jq '.asked - 1' /run/tmp/answer)" "$(jq .asked /run/tmp/answer)"
within "of how many" "$(jq .asked /run/tmp/answer)" 8 40

echo "# 200 hosts that do not answer keep nobody from being asked"
fresh
ip netns exec s3 sysctl -qw net.ipv4.icmp_echo_ignore_all=1
for n in $(seq 20 219); do
	ip -n s3 addr add 10.0.3.$n/24 dev sr
done
host 1 send --to 10.0.9.2 --rate 8e4 --seconds 18 &
jobs=($!)
sleep 4
limited=$(stat .echo_limited)
host 3 send --to 10.0.9.2 --flows 200 --source 10.0.3.20 --rate 1.6e6 --size 200 --seconds 14 &
jobs+=($!)
sleep 2
watch 1 11 &
jobs+=($!)
sent=$(stat .echo_sent)
sleep 10
within "the budget was short" "$(($(stat .echo_limited) - limited))" 50 1000
within "requests in 10 s" "$(($(stat .echo_sent) - sent))" 80 125
wait "${jobs[@]}"
within "host 1 was asked as ever, in 11 s" "$(told 1 .echo4)" 4 9
within "and is known" "$(stat .rtt_samples)" 1 1

echo "# sources that must not be answered"
sleep 1
before=$(stat .notices_sent)
for source in ff02::1 ff0e::5 :: ::1 ::ffff:10.0.1.2 ::10.0.1.2 fe80::1234 2001:db8:1::; do
	refused=$(stat .notices_refused)
	inject "$source"
	sleep 0.5
	within "refused to tell $source" "$(($(stat .notices_refused) - refused))" 1 20
done
within "told nobody" "$(($(stat .notices_sent) - before))" 0 0
inject fe80::ff:fe00:10 # its own address on that link
within "the router itself may be told" "$(($(stat .notices_sent) - before))" 1 20

echo "# media for many hosts: every router on its ways would speak"
before=$(stat .notices_sent)
ip -n r route add 239.0.0.0/8 dev rv
for to in 239.1.1.1 10.0.9.255; do
	refused=$(stat .notices_refused)
	ip netns exec r python3 "$peer" send --to $to --seconds 2
	within "refused to speak of media for $to" "$(($(stat .notices_refused) - refused))" 1 100
done
refused=$(stat .notices_refused)
inject 2001:db8:1::2 ff0e::77
within "refused to speak of media for ff0e::77" "$(($(stat .notices_refused) - refused))" 1 20
within "told nobody" "$(($(stat .notices_sent) - before))" 0 0
ip -n r route del 239.0.0.0/8 dev rv

echo "# what a browser sends: the header extension is quoted whole, and 16 bytes behind it"
for words in 6 24 25; do
	fresh
	rtc qdisc replace dev rv root handle 1: paqm bandwidth 20mbit feedback icmp
	unfit=$(stat .notices_unfit_packets)
	watch 1 4 &
	w=$!
	host 1 send --to 10.0.9.2 --extension $words --seconds 3 &
	host 1 send --to 2001:db8:9::2 --port 7000 --extension $words --seconds 3
	wait $w
	if [ $words -lt 25 ]; then
		within "extension of $words words: messages over IPv4" "$(told 1 .v4)" 5 30
		within "and over IPv6" "$(told 1 .v6)" 5 30
	else # the quote would have 132 bytes of payload
		within "extension of $words words: told nobody" "$(($(told 1 .v4) + $(told 1 .v6)))" 0 0
		within "and counted" "$(($(stat .notices_unfit_packets) - unfit))" 10 1000
	fi
	within "wrong ones" "$(told 1 .wrong)" 0 0
done

echo "# small packets of many flows draw no more than they bring"
rtc qdisc replace dev rv root handle 1: paqm bandwidth 1gbit feedback icmp rtt 100ms
sleep 1
bytes=$(stat .bytes)
before=$(stat .notices_sent)
host 3 send --to 10.0.9.2 --flows 100 --port 9000 --size 28 --rate 9e4 --seconds 10 # 4 a second
bytes=$(($(stat .bytes) - bytes))
sent=$(($(stat .notices_sent) - before))
within "messages to their sender" "$sent" 100 3000
within "bytes of messages, part of the bytes that drew them" \
	"$(awk -v m="$sent" -v b="$bytes" 'BEGIN { print 132 * m / b }')" 0.1 0.5
fresh

echo "# what cannot be quoted is looked at now and then"
unfit=$(stat .notices_unfit_packets)
ip netns exec s1 python3 "$peer" odd --to 10.0.9.2 --how options --count 2000 --gap 0.001
within "packets of 2 s that were looked at for a quote" \
	"$(($(stat .notices_unfit_packets) - unfit))" 20 125
fresh
before=$(stat .notices_sent)
ip netns exec s1 python3 "$peer" odd --to 10.0.9.2 --how small --count 400 --gap 0.04
within "messages in 4 s of pictures that begin with a small packet" \
	"$(($(stat .notices_sent) - before))" 10 20
fresh

echo "# prefixes"
rtc qdisc change dev rv root handle 1: paqm feedback-to 10.0.1.0/24,2001:db8:2::/47
refused=$(stat .notices_refused)
jobs=()
for n in 1 2 3; do
	host $n send --to 10.0.9.2 --seconds 5 &
	jobs+=($!)
	host $n send --to 2001:db8:9::2 --seconds 5 &
	jobs+=($!)
	watch $n 5 &
	jobs+=($!)
done
wait "${jobs[@]}"
within "host 1 is told over IPv4" "$(told 1 .v4)" 5 100
within "and not over IPv6" "$(told 1 .v6)" 0 0
within "host 2 is not told over IPv4" "$(told 2 .v4)" 0 0
within "but over IPv6" "$(told 2 .v6)" 5 100
within "host 3 is not told over IPv4" "$(told 3 .v4)" 0 0
within "but over IPv6" "$(told 3 .v6)" 5 100
within "nor asked over IPv4" "$(told 3 .echo4)" 0 0
within "refusals" "$(($(stat .notices_refused) - refused))" 15 300
rtc qdisc change dev rv root handle 1: paqm feedback-to any

echo "# a host with 200 flows leaves the other its part"
rtc qdisc replace dev rv root handle 1: paqm bandwidth 4mbit feedback icmp rtt auto
host 1 send --to 10.0.9.2 --flows 200 --port 9000 --rate 2e6 --size 200 --seconds 14 &
jobs=($!)
host 2 send --to 10.0.9.2 --seconds 14 &
jobs+=($!)
sleep 2
sent=$(stat .notices_sent)
limited=$(stat .notices_limited)
watch 2 10 &
w=($!)
watch 1 10 &
w+=($!)
wait "${w[@]}"
within "the budget was short" "$(($(stat .notices_limited) - limited))" 100 100000
# 0.5 % of 4 Mbit/s are 18.9 messages of 132 bytes in a second
within "messages in 10 s" "$(($(stat .notices_sent) - sent))" 150 200
# nothing changes, so its flow is reminded every 1.5 s; by lot it would have had one in 10 s
within "the other host's in 10 s" "$(told 2 .v4)" 6 10
wait "${jobs[@]}"

echo "# 8,000 invented sources do not push out a host that speaks once in a while"
fresh
ip -n r route add 10.66.0.0/16 via 10.0.3.2
host 1 send --to 10.0.9.2 --seconds 4
within "its RTT, us" "$(stat .rtt_max_us)" 20000 22000
host 3 invent --to 10.0.9.2 --source 10.66.0.1 --seconds 22 &
jobs=($!)
sleep 8
# one of the invented ones would have been told in its place after 2 s
within "8 s of them later it is known, us" "$(stat .rtt_max_us)" 20000 22000
sent=$(stat .notices_sent)
watch 1 12 &
w=$!
# less than its fair rate, some 38 kbit/s: who sends more is told more rarely
host 1 send --to 10.0.9.2 --rate 24000 --size 200 --seconds 12
wait $w
within "messages in 12 s" "$(($(stat .notices_sent) - sent))" 600 1280
# it is reminded every 1.5 s: nothing that it was told gets as old as the 3 s that it holds for
within "the host's first, after ms" "$(told 1 .first_ms)" 0 1000
within "its longest pause, ms" "$(told 1 .pause_ms)" 100 2000
within "RTT, us" "$(stat .rtt_max_us)" 20000 22000
wait "${jobs[@]}"
ip -n r route del 10.66.0.0/16

echo "# what the way back drops on this host has failed: nobody refused it"
fresh
counts='[.notices_sent, .notices_refused, .notices_failed, .echo_sent, .echo_refused, .echo_failed]'
ip netns exec r tc qdisc replace dev rs1 root bfifo limit 10 # every packet is too long
before=$(stat "$counts | tostring")
host 1 send --to 10.0.9.2 --seconds 4
lost=$(jq -cn --argjson a "$before" --argjson b "$(stat "$counts | tostring")" \
	'[range(6) | $b[.] - $a[.]]')
within "messages that were not sent" "$(jq '.[2]' <<<"$lost")" 3 100
within "echo requests that were not" "$(jq '.[5]' <<<"$lost")" 1 10
within "none of them is taken for sent, or refused" "$(jq '.[0] + .[1] + .[3] + .[4]' <<<"$lost")" 0 0
ip netns exec r tc qdisc replace dev rs1 root netem delay 10ms limit 100000

echo "# no feedback, no sockets; and back"
within "raw sockets while RTTs are measured" "$(sockets)" 2 2
rtc qdisc change dev rv root handle 1: paqm feedback none
within "raw sockets without feedback" "$(sockets)" 0 0
rtc qdisc change dev rv root handle 1: paqm feedback icmp
within "raw sockets with feedback again" "$(sockets)" 2 2
rtc qdisc change dev rv root handle 1: paqm rtt 50ms
within "raw sockets with a given RTT" "$(sockets)" 0 0
within "which is in force, us" "$(stat .skip_us)" 50000 50000
rtc qdisc del dev rv root

echo "# devices, namespaces and modules go while requests are under way"
for n in 1 2 3 4 5 6; do
	ip netns add n$n
	ip netns add m$n
	ip link add d0 netns n$n type veth peer name e0 netns m$n
	address n$n d0 10.8.0.1/24 2001:db8:8::1/64
	address m$n e0 10.8.0.2/24 2001:db8:8::2/64
	ip netns exec m$n tc qdisc add dev e0 root netem delay 700ms # the answers take long
	ip netns exec n$n tc qdisc add dev d0 root handle 1: paqm bandwidth 5mbit feedback icmp rtt auto
	ip netns exec n$n python3 "$peer" send --to 10.8.0.2 --seconds 2 &
	a=$!
	ip netns exec n$n python3 "$peer" send --to 2001:db8:8::2 --seconds 2 &
	b=$!
	ip netns exec m$n python3 "$here/feedback.py" send --to 10.8.0.1 --seconds 1 &
	c=$!
	sleep 1.2
	case $n in
	1) ip -n n$n link del d0 ;;
	2) ip netns exec n$n tc qdisc del dev d0 root ;;
	3) ip netns exec n$n tc qdisc change dev d0 root handle 1: paqm rtt 20ms ;;
	4) ip netns exec n$n tc qdisc replace dev d0 root handle 2: pfifo ;;
	5) ip -n n$n link set d0 netns m$n ;;
	esac
	wait $a $b $c
	ip netns del n$n
	ip netns del m$n
done
sleep 2
check "unload" unload
load
rtc qdisc replace dev rv root handle 1: paqm bandwidth 20mbit feedback icmp rtt auto
host 2 send --to 10.0.9.2 --seconds 3 &
s=$!
sleep 2.05
rtc qdisc del dev rv root
check "unload right after the last request" unload
wait $s
no_leaks
result
