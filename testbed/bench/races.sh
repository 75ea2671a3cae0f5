#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# First process of a guest with several processors: paqm is changed, listed, replaced and taken away
# while packets come on other processors. KERNEL, ROUNDS, OPS, SEED and SKIP come from races.py, which
# reads what is written here: "@fault WORDS" for a command that failed, "@notices N" for those that
# were sent, "@round N", "@end".
export PATH=/bin:/sbin TC_LIB_DIR=/lib/tc PAQM_KO_DIR=/
kcsan=/sys/kernel/debug/kcsan
kmemleak=/sys/kernel/debug/kmemleak
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t debugfs debugfs /sys/kernel/debug
mkdir -p /run/netns /var
ln -s /run /var/run

# By name the shell would take its own small ip and tc.
do_ip() {
	/sbin/ip "$@" || echo "@fault ip $*"
}

do_tc() {
	/sbin/tc "$@" >/dev/null || echo "@fault tc $*"
}

listed() {
	do_tc -s qdisc show dev v0
	do_tc -s class show dev v0
}

change() {
	do_tc qdisc change dev v0 root handle 1: paqm "$@"
	listed
}

root_paqm() {
	do_tc qdisc replace dev v0 root handle 1: paqm bandwidth 20mbit feedback icmp
}

one_round() {
	for rate in 10mbit 20mbit 50mbit auto 3mbit 20mbit; do
		change bandwidth $rate
		sleep 0.5
	done
	for words in "weights host" "weights flow" noisolate isolate "period 50ms" "period 100ms" \
		"flows 4096" "flows 1024" "limit 2000000" ecn police "feedback in-band" nopolice \
		"feedback none" "feedback icmp" "gop 500ms" "rtt auto" "router-id 7" \
		"key 7:00112233445566778899aabbccddeeff" "key none" "split flows" borrow noborrow \
		"classify protocol" "classify auto" "law ecf" "law erf" "law rcp" "law xcp" "law vcp" \
		"law maxmin"; do
		# shellcheck disable=SC2086 # several words
		change $words
		sleep 0.2
	done
	/sbin/tc -s qdisc show dev v0 | sed -n 's/.*notices sent \([0-9]*\).*/@notices \1/p'
	for child in "pfifo limit 100" fq_codel "red limit 100000 avpkt 1000"; do
		# shellcheck disable=SC2086
		do_tc qdisc replace dev v0 parent 1:2 $child
		listed
	done
	do_tc filter add dev v0 parent 1: protocol ip pref 1 u32 match ip dport 5001 0xffff flowid 1:2
	sleep 0.2
	do_tc filter del dev v0 parent 1: pref 1
	do_tc qdisc del dev v0 parent 1:2
	for other in dcbt rlqos; do
		do_tc qdisc replace dev v0 root handle 4: tbf rate 20mbit burst 20kb latency 100ms
		do_tc qdisc replace dev v0 parent 4:1 $other
		sleep 0.5
		listed
		do_tc qdisc change dev v0 parent 4:1 $other limit 300
		sleep 0.2
	done
	do_tc qdisc replace dev v0 root handle 2: mq
	for queue in 1 2 3 4; do
		do_tc qdisc replace dev v0 parent 2:$queue handle 3$queue: \
			paqm bandwidth 8mbit feedback icmp 2>/dev/null
	done
	sleep 0.5
	listed
	do_ip link set v0 down
	do_ip link set v0 up
	root_paqm
	sleep 0.5
	do_tc qdisc del dev v0 root
	rmmod sch_paqm || echo "@fault rmmod"
	insmod /sch_paqm.ko || echo "@fault insmod"
	root_paqm
}

if [ "$KERNEL" = kcsan ]; then
	echo "$SKIP" >/sys/module/kcsan/parameters/skip_watch
	echo on >$kcsan
fi
[ "$OPS" -eq 0 ] || /torture --seed "$SEED" --ops "$OPS" --beside 2 || echo "@fault torture"
for module in paqm_feedback sch_paqm sch_dcbt sch_rlqos; do
	insmod /$module.ko || echo "@fault insmod $module"
done
# near -- this router -- far; near is told its rates, and asked
for host in near far; do
	do_ip netns add $host
	do_ip -n $host link set lo up
done
do_ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 netns far
do_ip link add u0 type veth peer name u1 netns near
do_ip addr add 10.0.0.1/24 dev v0
do_ip addr add 10.0.1.1/24 dev u0
do_ip link set v0 up
do_ip link set u0 up
do_ip -n far addr add 10.0.0.2/24 dev v1
do_ip -n far link set v1 up
do_ip -n far route add default via 10.0.0.1
do_ip -n near addr add 10.0.1.2/24 dev u1
do_ip -n near link set u1 up
do_ip -n near route add default via 10.0.1.1
echo 1 >/proc/sys/net/ipv4/ip_forward
root_paqm
/sbin/ip netns exec far /races_load sink &
sleep 1
for load in "rtp 5000 6 4000" "rtp 5010 4 3000" "rtp 5020 1 1000" tcp tcp; do
	# shellcheck disable=SC2086
	/sbin/ip netns exec near /races_load $load &
done
sleep 3
round=0
while [ $round -lt "$ROUNDS" ]; do
	one_round
	round=$((round + 1))
	echo "@round $round"
done
/sbin/tc -s qdisc show dev v0
do_tc qdisc del dev v0 root
for module in sch_rlqos sch_dcbt sch_paqm paqm_feedback; do
	rmmod $module || echo "@fault rmmod $module"
done
case $KERNEL in
kcsan)
	echo off >$kcsan
	cat $kcsan
	;;
kasan) # what is new is only told from its second sight on
	echo scan >$kmemleak
	sleep 6
	echo scan >$kmemleak
	cat $kmemleak
	;;
esac
echo @end
reboot -f
