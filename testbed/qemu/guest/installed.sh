# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# From the installation to all that the packages do, up to a restart of the machine. Read by `run`.
echo "# Debian $(cat /etc/debian_version), kernel $kernel, $(tc -V), $(dkms --version)"
udevadm settle
check "apt reads the local package directory" apt-get -q update
dpkg-query -W -f '${Package}\n' | sort >/root/packages
system_state | sort >/root/before

echo "# installed without kernel headers"
out=$(apt-get -q -y install "$here"/sch-paqm-dkms_*.deb "$here"/tc-paqm_*.deb "$here"/paqmd_*.deb \
	"$here"/paqmtop_*.deb "$here"/libpaqmclient0_*.deb "$here"/libpaqmclient-dev_*.deb \
	"$here"/paqm-wireshark_*.deb "$here"/paqm-meet_*.deb "$here"/paqm-trial_*.deb 2>&1)
same "apt installs the packages although there are no headers" $? 0
has "the administrator is told what is missing" "$out" "headers.* do not seem to be installed|linux-headers"
out=$(tc qdisc replace dev eth0 root paqm bandwidth 20mbit feedback icmp 2>&1)
has "tc says that the kernel does not know paqm" "$out" 'qdisc.* (unknown|not found)|No such file'
has "dkms knows the source" "$(dkms status)" 'sch-paqm.*added'

echo "# headers arrive: DKMS builds (takes minutes without hardware virtualisation)"
check "apt installs the kernel headers" apt-get -q -y install linux-headers-amd64
has "dkms installed the modules" "$(dkms status -k "$kernel")" 'sch-paqm.*installed'
cp /var/lib/dkms/sch-paqm/*/"$kernel"/*/log/make.log /root/make.log 2>/dev/null
has "there is a log of the build" "$(cat /root/make.log)" 'LD \[M\].*sch_paqm'
same "the modules build without warnings" \
	"$(grep -iE 'warning|error' /root/make.log | grep -v 'compiler differs')" ""
check "KUnit's suite is not installed" \
	sh -c "! find /lib/modules/$kernel | grep -q paqm_kunit"
has "the man page is there" "$(dpkg -L tc-paqm)" 'man8/tc-paqm.8'

echo "# one tc line"
same "nothing of ours is loaded" "$(lsmod | grep -c paqm)" 0
check "tc attaches paqm, the kernel loads it by itself" \
	tc qdisc replace dev eth0 root paqm bandwidth 20mbit feedback icmp
has "the plugin shows it" "$(tc qdisc show dev eth0)" 'paqm .*bandwidth 20Mbit.*feedback icmp'
has "it is our module" "$(modinfo -n sch_paqm)" 'updates/dkms/sch_paqm.ko'
check "tc removes it" tc qdisc del dev eth0 root
check "modules unload" modprobe -r sch_paqm paqm_feedback

for driver in virtio_net e1000; do
	pair=()
	for dev in /sys/class/net/eth*; do
		[ "$(basename "$(readlink "$dev/device/driver")")" = "$driver" ] &&
			pair+=("$(basename "$dev")")
	done
	same "two $driver devices" "${#pair[@]}" 2
	. "$here/router.sh" "$driver" "${pair[@]}"
done
echo "# Wi-Fi, whose cards queue packets out of reach; the simulated one does from Linux 6.2 on"
check "a simulated radio" modprobe mac80211_hwsim radios=1
wlan=$(basename /sys/class/ieee80211/phy*/device/net/*)
check "it is up" ip link set "$wlan" up
if tc qdisc show dev "$wlan" | grep -q noqueue; then warning='never lets packets wait'; else warning='^$'; fi
has "tc warns that nothing will wait there, if so" \
	"$(tc qdisc replace dev "$wlan" root paqm bandwidth auto 2>&1)" "$warning"
has "but not with a rate" "$(tc qdisc replace dev "$wlan" root paqm bandwidth 20mbit 2>&1)" '^$'
check "tc removes it from there" tc qdisc del dev "$wlan" root
check "the radio goes" modprobe -r mac80211_hwsim
check "modules unload after traffic" modprobe -r sch_paqm paqm_feedback
check "the package's own test (autopkgtest)" "$here/attach"
check "no warning from the kernel" no_faults

. "$here/persistence.sh"
. "$here/pppd.sh"
. "$here/bond.sh"
. "$here/paqmtop.sh"
. "$here/daemon.sh"
. "$here/rlqosd.sh"
. "$here/meet.sh"
. "$here/trial.sh"
