#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Status 0 if the running kernel has taprio, and its schedule goes on after a child was replaced. In
# 6.1 that resets the qdisc, whose timer nobody starts again: nothing leaves any more, whatever the
# child is.
"$(dirname "$0")/have.sh" sch_taprio || exit 1
tc=${TC:-tc} dev=vg4
ip link add $dev numtxqueues 2 numrxqueues 2 type veth peer name vh4 numtxqueues 2 numrxqueues 2 || exit 2
ip link set $dev up && ip link set vh4 up
$tc qdisc add dev $dev root handle 1: taprio num_tc 1 map 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
	queues 1@0 base-time 0 sched-entry S 01 1000000 clockid CLOCK_TAI 2>/dev/null
sleep 1 # the schedule has begun
$tc qdisc replace dev $dev parent 1:1 handle 10: pfifo
sleep 1
"$(dirname "$0")/send.py" $dev --count 5 --size 300 >/dev/null
sleep 1
$tc -s qdisc show dev $dev | grep -A2 '^qdisc pfifo 10:' | grep -q 'backlog 0b 0p'
status=$?
ip link del $dev
exit $status
