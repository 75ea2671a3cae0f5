#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# `bandwidth auto`: the capacity of a link that only the parent knows, measured; it
# falls, rises and stalls; the option changes on a live qdisc.
. "$(dirname "$0")/lib.sh"
load
pair
tc="ip netns exec a tc"

parent() {
	$tc class replace dev a0 parent 1: classid 1:1 htb rate "$1" ceil "$1" burst 1600 cburst 1600 \
		quantum 1514
}

# Capacity in per mille of $1 bit/s.
capacity() {
	stat_of .capacity_bps | awk -v c="$1" '{ printf "%.0f", 1000 * $1 / c }'
}

$tc qdisc add dev a0 root handle 1: htb default 1
parent 8mbit
$tc qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth auto
check "a guess at first" test "$(stat_of .capacity_source)" = guess
check "shown as auto" bash -c "$tc qdisc show dev a0 | grep -q 'paqm .*bandwidth auto'"

echo "# elastic traffic that always waits"
blast --kind quic --port 8000 --flows 4 --rate 60e6 --size 1200 --seconds 22 &
load=$!
sleep 4
within "8 Mbit/s measured, per mille" "$(capacity 8000000)" 980 1020
check "source of the capacity" test "$(stat_of .capacity_source)" = measured
parent 2mbit
sleep 0.25
within "250 ms after a fall to 2 Mbit/s, per mille" "$(capacity 2000000)" 500 1300
sleep 2.75
within "3 s after it" "$(capacity 2000000)" 980 1020
parent 20mbit
sleep 4
within "4 s after a rise to 20 Mbit/s" "$(capacity 20000000)" 950 1020

echo "# the option on a live qdisc"
$tc qdisc change dev a0 parent 1:1 handle 10: paqm bandwidth 5mbit
sleep 1
within "told 5 Mbit/s" "$(capacity 5000000)" 1000 1000
$tc qdisc change dev a0 parent 1:1 handle 10: paqm bandwidth auto
sleep 3
within "measured again" "$(capacity 20000000)" 950 1020
$tc qdisc change dev a0 parent 1:1 handle 10: paqm bandwidth none
sleep 0.5
check "capacity of the device" test "$(stat_of .capacity_source)" != measured
$tc qdisc change dev a0 parent 1:1 handle 10: paqm bandwidth auto
wait $load

echo "# nothing waits: what was measured stands, and the loops sleep"
sleep 1
before=$(stat_of .capacity_bps)
sleep 5
within "after 5 s of silence, per mille" "$(capacity "$before")" 999 1001
blast --kind rtp --flows 2 --rate 1e6 --seconds 3
within "1 Mbit/s of media on it" "$(capacity "$before")" 900 1100

echo "# headroom: media that queues asks for it, and it goes when nothing queues"
headroom() {
	stat_of .headroom | awk '{ printf "%.0f", 1000 * $1 }'
}
within "none before, per mille" "$(headroom)" 0 5
# what waits apart, as it is beyond the fair rate, asks for none
$tc qdisc change dev a0 parent 1:1 handle 10: paqm noisolate
parent 4mbit
blast --kind rtp --flows 3 --rate 8e6 --seconds 3
high=$(headroom)
within "media above the rate for 3 s" "$high" 200 500
parent 20mbit
blast --kind rtp --flows 3 --rate 1e6 --seconds 5
within "5 s of little media later, less by" "$((high - $(headroom)))" 150 250

echo "# media only, more than the start value: growth finds the rate"
$tc qdisc del dev a0 parent 1:1
$tc qdisc add dev a0 parent 1:1 handle 10: paqm bandwidth auto
blast --kind rtp --flows 3 --rate 6e6 --seconds 4
within "at least what was sent" "$(capacity 6000000)" 1000 4000

echo "# many changes against traffic"
blast --kind quic --port 8000 --flows 4 --rate 30e6 --size 1200 --seconds 6 &
load=$!
for i in $(seq 40); do
	$tc qdisc change dev a0 parent 1:1 handle 10: paqm \
		bandwidth "$([ $((i % 2)) = 0 ] && echo auto || echo 7mbit)"
	sleep 0.05
done
$tc qdisc del dev a0 root
check "removed while it measures" bash -c "! $tc qdisc show dev a0 | grep -q paqm"
wait $load
check unload unload
result
