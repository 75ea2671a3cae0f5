// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What the standard library lacks: sockets of packets between processes, and a clock that counts
//! sleep. The C library is linked anyway.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const AF_UNIX: c_int = 1;
const SOCK_SEQPACKET: c_int = 5;
const SOCK_NONBLOCK: c_int = 0o4000;
const SOCK_CLOEXEC: c_int = 0o2_000_000;
const MSG_NOSIGNAL: c_int = 0x4000;
const CLOCK_BOOTTIME: c_int = 7;
const POLLIN: i16 = 1;
const POLLOUT: i16 = 4;
/// Bytes of a socket's path, its end among them.
pub const PATH_MAX: usize = 108;

#[repr(C)]
struct Address {
    family: u16,
    path: [u8; PATH_MAX],
}

#[repr(C)]
struct Time {
    seconds: c_long,
    nanoseconds: c_long,
}

#[repr(C)]
struct Poll {
    fd: c_int,
    events: i16,
    revents: i16,
}

extern "C" {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn connect(fd: c_int, address: *const Address, len: u32) -> c_int;
    fn send(fd: c_int, data: *const c_void, len: usize, flags: c_int) -> isize;
    fn recv(fd: c_int, data: *mut c_void, len: usize, flags: c_int) -> isize;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    fn poll(fds: *mut Poll, count: c_ulong, timeout_ms: c_int) -> c_int;
}

/// A connected, non-blocking socket of packets.
pub fn dial(path: &[u8]) -> io::Result<OwnedFd> {
    let mut address = Address {
        family: AF_UNIX as u16,
        path: [0; PATH_MAX],
    };
    if path.len() >= PATH_MAX {
        return Err(io::Error::from_raw_os_error(36)); // ENAMETOOLONG
    }
    address.path[..path.len()].copy_from_slice(path);
    // SAFETY: the descriptor is new and owned by nobody else; the address outlives the call.
    unsafe {
        let fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = OwnedFd::from_raw_fd(fd);
        if connect(
            fd.as_raw_fd(),
            &address,
            std::mem::size_of::<Address>() as u32,
        ) != 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok(fd)
    }
}

/// Send a packet.
pub fn put(fd: &OwnedFd, packet: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of a slice.
    let sent = unsafe {
        send(
            fd.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            MSG_NOSIGNAL,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Receive a packet; 0 bytes: the other end has closed.
pub fn take(fd: &OwnedFd, to: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are those of a slice.
    let got = unsafe { recv(fd.as_raw_fd(), to.as_mut_ptr().cast(), to.len(), 0) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Wait until there is something to read or, if wanted, room to write.
pub fn wait(fd: Option<&OwnedFd>, room: bool, timeout: Option<Duration>) {
    let events = if room { POLLIN | POLLOUT } else { POLLIN };
    let mut one = Poll {
        fd: fd.map_or(-1, AsRawFd::as_raw_fd),
        events,
        revents: 0,
    };
    // Rounded up: a wait that is too short would be repeated.
    let ms = timeout.map_or(-1, |t| {
        t.as_nanos().div_ceil(1_000_000).min(1_000_000) as c_int
    });
    // SAFETY: one structure, which outlives the call.
    unsafe { poll(&mut one, 1, ms) };
}

/// Time that goes on while the machine sleeps: no advice outlives that.
pub fn now() -> Duration {
    let mut time = Time {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the structure outlives the call.
    unsafe { clock_gettime(CLOCK_BOOTTIME, &mut time) };
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}
