// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Records of paqmd's socket (feedback-daemon/paqm_ipc.h): made and read, no input or output.
//!
//! They are in host byte order and only grow at their end: what is behind the known part is passed
//! over, as are kinds that are not known.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MAGIC: u32 = 0x5051_4950;
const VERSION: u8 = 1;
/// Bytes that a record may ever have.
pub const RECORD_MAX: usize = 512;
/// What a message can say, bit/s.
pub const RATE_MAX: u64 = 1_000_000_000_000;

const REGISTER: u8 = 1;
const REGISTERED: u8 = 2;
const RATE: u8 = 3;
const UNREGISTER: u8 = 4;
const STATUS: u8 = 5;

const HEAD: usize = 8;
const REGISTERED_LEN: usize = 24;
const RATE_LEN: usize = 72;

pub(crate) const EINVAL: i32 = 22;
pub(crate) const EAFNOSUPPORT: i32 = 97;

/// Where the advice for a flow comes from, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No advice yet.
    None,
    /// The rate is from the absolute rate of a message.
    Erf,
    /// The rate is from the relative value of a message.
    Ecf,
    /// The last router has fallen silent.
    Expired,
    /// paqmd has been unreachable, or silent, for too long.
    Lost,
    /// paqmd refused the flow: see `error`.
    Refused,
    /// Something of a later release; the rate counts.
    Other(u8),
}

impl Cause {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Erf,
            2 => Self::Ecf,
            3 => Self::Expired,
            other => Self::Other(other),
        }
    }
}

/// A media flow as paqmd is told of it. Rates are in bit/s at the IP level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Address that it is sent from; `None`: any.
    pub source: Option<IpAddr>,
    /// UDP port that it is sent from.
    pub source_port: u16,
    /// Address that it is sent to.
    pub destination: IpAddr,
    /// UDP port that it is sent to.
    pub destination_port: u16,
    /// Of its RTP packets; 0: any.
    pub ssrc: u32,
    /// Advice is never below; 0: no floor.
    pub floor_bps: u64,
    /// Advice is never above; not 0.
    pub ceiling_bps: u64,
    /// How long the sender keeps a quantizer, µs; for paqmctl.
    pub gop_us: u32,
    /// How long it takes to follow advice, µs; for paqmctl.
    pub answer_us: u32,
}

impl Flow {
    /// A flow to an address, from anywhere, without limits; ports are still to be named.
    pub fn to(destination: IpAddr) -> Self {
        Self {
            source: None,
            source_port: 0,
            destination,
            destination_port: 0,
            ssrc: 0,
            floor_bps: 0,
            ceiling_bps: RATE_MAX,
            gop_us: 0,
            answer_us: 0,
        }
    }

    /// What is impossible about it: 0, EINVAL or EAFNOSUPPORT.
    pub fn fault(&self) -> i32 {
        let to = plain(self.destination);
        if let Some(from) = self.source.map(plain) {
            if !from.is_unspecified() && from.is_ipv4() != to.is_ipv4() {
                return EAFNOSUPPORT;
            }
        }
        if to.is_unspecified()
            || self.source_port == 0
            || self.destination_port == 0
            || self.ceiling_bps == 0
            || self.ceiling_bps > RATE_MAX
            || self.floor_bps > self.ceiling_bps
        {
            return EINVAL;
        }
        0
    }

    /// The record that registers it; the cookie comes back in every answer.
    pub fn encode(&self, cookie: u64) -> Vec<u8> {
        let mut body = Vec::with_capacity(72);
        body.extend(self.source.map_or([0; 16], octets));
        body.extend(octets(self.destination));
        body.extend(self.source_port.to_ne_bytes());
        body.extend(self.destination_port.to_ne_bytes());
        body.extend(self.ssrc.to_ne_bytes());
        body.extend(self.floor_bps.to_ne_bytes());
        body.extend(self.ceiling_bps.to_ne_bytes());
        body.extend(self.gop_us.to_ne_bytes());
        body.extend(self.answer_us.to_ne_bytes());
        body.extend(cookie.to_ne_bytes());
        record(REGISTER, &body)
    }
}

/// The newest allowance of a flow: the minimum over its routers.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Of the registration.
    pub cookie: u64,
    /// Where it comes from.
    pub cause: Cause,
    /// IP level, headers included; 0: no advice in force.
    pub rate_bps: u64,
    /// Of the router that sets the rate.
    pub router_id: u64,
    /// Its address.
    pub router: Option<IpAddr>,
    /// Relative value of the message (ECF).
    pub value: f32,
    /// Of the message.
    pub seq: u32,
    /// Between its messages.
    pub period_ms: u16,
    /// Delay of that router's media queue, tenths of a millisecond.
    pub qdelay_100us: u16,
    /// That queue is beyond its limit.
    pub overload: bool,
    /// This flow sends more than its rate, and its packets are held back.
    pub policed: bool,
    /// The fair rate itself, not a step towards it.
    pub is_final: bool,
    /// The message had a valid tag.
    pub auth: bool,
    /// Routers whose advice is in force.
    pub routers: u16,
    /// CLOCK_MONOTONIC less the age of the message, ns.
    pub captured_ns: u64,
}

/// A record of paqmd.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To a registration: its cookie, and 0 or an errno.
    Registered(u64, i32),
    /// An allowance.
    Rate(Rate),
}

/// The record that gives a flow up.
pub fn unregister(cookie: u64) -> Vec<u8> {
    record(UNREGISTER, &cookie.to_ne_bytes())
}

/// The record that says how a sender followed: bit/s sent, number of the group, quantizer.
pub fn status(cookie: u64, wire_bps: u64, gop: u32, qp: u32) -> Vec<u8> {
    let mut body = Vec::with_capacity(24);
    body.extend(cookie.to_ne_bytes());
    body.extend(wire_bps.to_ne_bytes());
    body.extend(gop.to_ne_bytes());
    body.extend(qp.to_ne_bytes());
    record(STATUS, &body)
}

/// A record of paqmd, or why it is none.
pub fn decode(b: &[u8]) -> Result<Answer, &'static str> {
    if b.len() < HEAD {
        return Err("shorter than a header");
    }
    if u32_at(b, 0) != MAGIC {
        return Err("wrong magic");
    }
    if b[4] != VERSION {
        return Err("unknown version");
    }
    if usize::from(u16_at(b, 6)) != b.len() || b.len() > RECORD_MAX {
        return Err("wrong length");
    }
    let want = match b[5] {
        REGISTERED => REGISTERED_LEN,
        RATE => RATE_LEN,
        _ => return Err("unknown kind"),
    };
    if b.len() < want {
        return Err("shorter than its kind");
    }
    let cookie = u64_at(b, 8);
    if b[5] == REGISTERED {
        return Ok(Answer::Registered(cookie, u32_at(b, 16) as i32));
    }
    let mut router = [0; 16];
    router.copy_from_slice(&b[32..48]);
    let flags = b[69];
    Ok(Answer::Rate(Rate {
        cookie,
        cause: Cause::of(b[68]),
        rate_bps: u64_at(b, 16),
        router_id: u64_at(b, 24),
        router: (router != [0; 16]).then(|| plain(IpAddr::from(router))),
        value: f32::from_bits(u32_at(b, 56)),
        seq: u32_at(b, 60),
        period_ms: u16_at(b, 64),
        qdelay_100us: u16_at(b, 66),
        overload: flags & 1 != 0,
        policed: flags & 2 != 0,
        is_final: flags & 4 != 0,
        auth: flags & 8 != 0,
        routers: u16_at(b, 70),
        captured_ns: u64_at(b, 48),
    }))
}

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = HEAD + body.len();
    let mut b = Vec::with_capacity(len);
    b.extend(MAGIC.to_ne_bytes());
    b.extend([VERSION, kind]);
    b.extend((len as u16).to_ne_bytes());
    b.extend(body);
    b
}

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([b[at], b[at + 1]])
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&b[at..at + 8]);
    u64::from_ne_bytes(bytes)
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// IPv4 that is mapped into IPv6, as IPv4.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => match v6.octets() {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => {
                Ipv4Addr::new(a, b, c, d).into()
            }
            octets => Ipv6Addr::from(octets).into(),
        },
        v4 => v4,
    }
}
