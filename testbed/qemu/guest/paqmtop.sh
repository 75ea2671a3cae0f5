# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# paqmtop against tc: both count the same events. Read by `run`.
echo "# paqmtop"
modprobe -qr sch_paqm paqm_feedback
out=$(paqmtop -n 1 2>&1)
has "paqmtop says that the module is not loaded" "$out" 'modprobe sch_paqm'
ip netns add peer
ip link add t0 type veth peer name t1 netns peer
sysctl -qw net.ipv6.conf.t0.disable_ipv6=1
ip addr add 10.3.0.1/24 dev t0
ip -n peer addr add 10.3.0.2/24 dev t1
ip link set t0 up
ip -n peer link set t1 up
modprobe sch_paqm

# top_stat FILTER: from paqmtop's last line; tc_stat FILTER: from tc
top_stat() { tail -n 1 /tmp/top.json | jq ".devices.t0 | $1"; }
tc_stat() { tc -s -j qdisc show dev t0 | jq ".[] | select(.kind == \"paqm\") | $1"; }

paqmtop -j -i 0.5 t0 >/tmp/top.json &
top=$!
check "paqmtop reports" wait_for test -s /tmp/top.json
tc qdisc add dev t0 root paqm bandwidth 1mbit feedback icmp
python3 "$here/send.py" t0 --kind quic --flows 4 --size 1400 --count 400 >/dev/null
python3 "$here/blast.py" --to 10.3.0.2 --kind rtp --flows 2 --rate 2e6 --seconds 8
check "the queue runs empty" wait_for sh -c \
	'tc -s -j qdisc show dev t0 | jq -e ".[0].backlog == 0 and .[0].qlen == 0"'
sleep 2
before=$(tc_stat .rounds)
kill -TERM "$top"
wait "$top"
same "paqmtop ends when told to" $? 0
after=$(tc_stat .rounds)
within "rounds as tc counts them, from $before to $after" "$(top_stat .rounds)" "$before" "$after"
for class in media elastic; do
	for cause in tail inner strike; do
		same "$class packets dropped by $cause as tc counts them" \
			"$(top_stat ".$class.${cause}_packets")" "$(tc_stat ".$class.drop_${cause}_packets")"
	done
done
within "there were drops" "$(top_stat '.elastic.tail_packets + .elastic.inner_packets')" 1 399
within "there were notices" "$(top_stat .notices_queued)" 1 100000
same "notices as tc counts them" "$(top_stat '.notices_queued + .notices_ring')" \
	"$(tc_stat .notices_owed)"
same "router as tc names it" "$(top_stat .router)" "$(tc_stat .router)"
paqmtop -n 1 -i 0.2 >/tmp/top.txt
same "paqmtop in text ends after its count" $? 0
tc qdisc del dev t0 root
ip link del t0
ip netns del peer
check "modules unload after paqmtop" modprobe -r sch_paqm paqm_feedback
