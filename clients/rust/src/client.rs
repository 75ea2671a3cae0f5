// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The client: a connection to paqmd that is made again, flows, and the newest advice for each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::records::{self, Answer, Cause, Flow, Rate};
use crate::sys;

/// paqmd's socket, overridden by `$PAQM_SOCKET`.
pub const PATH: &str = "/run/paqmd/client.sock";
/// How long an allowance outlives the connection that gave it.
pub const GRACE: Duration = Duration::from_secs(3);

// Advice holds for three periods of its router, within these limits. Then paqmd says that it has
// expired; if it does not for LIFE_MORE, it hangs.
const LIFE_MIN: Duration = Duration::from_secs(3);
const LIFE_MAX: Duration = Duration::from_secs(30);
const LIFE_MORE: Duration = Duration::from_secs(1);

const RETRY: Duration = Duration::from_millis(500);
const AGAIN_MIN: Duration = Duration::from_millis(500);
const AGAIN_MAX: Duration = Duration::from_secs(8);
/// Of one wait for a timer: waits do not count the time that the machine sleeps.
const NAP: Duration = Duration::from_secs(1);
const RECORDS_PER_CALL: usize = 64;

/// The newest advice for a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Of [`Client::add`].
    pub flow: u64,
    /// Where it comes from, or why there is none.
    pub cause: Cause,
    /// Upper bound, bit/s at the IP level; 0: no advice.
    pub rate_bps: u64,
    /// An errno, with [`Cause::Refused`].
    pub error: i32,
    /// All that paqmd said, flags of the message among it.
    pub rate: Option<Rate>,
}

struct Entry {
    told: Flow,
    advice: Advice,
    news: bool,
    pause: Duration,         // before the last attempt; 0: not refused yet
    again: Option<Duration>, // when to register again
    ends: Option<Duration>,  // when the advice ends unless it is renewed
    lost: bool,              // the connection that gave it has ended
    known: bool,             // the connection was told of it
}

/// A client of paqmd, which need not be there yet.
pub struct Client {
    path: PathBuf,
    fd: Option<OwnedFd>,
    trouble: Option<String>,
    retry: Option<Duration>,
    heard: bool, // the connection has told something: systemd alone accepts, too
    doubt: Option<Duration>, // when to take it that nobody answers
    timer: Option<Duration>, // when the first flow has something due
    flows: BTreeMap<u64, Entry>,
    untold: BTreeSet<u64>,
    gone: VecDeque<Vec<u8>>,
    news: VecDeque<u64>,
    last: u64,
}

impl Client {
    /// Make a client. `None`: `$PAQM_SOCKET`, else [`PATH`].
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let path = path.map(Path::to_path_buf).unwrap_or_else(|| {
            std::env::var_os("PAQM_SOCKET")
                .filter(|p| !p.is_empty())
                .unwrap_or_else(|| PATH.into())
                .into()
        });
        if path.as_os_str().len() >= sys::PATH_MAX {
            return Err(io::Error::from_raw_os_error(36)); // ENAMETOOLONG
        }
        let mut client = Self {
            path,
            fd: None,
            trouble: None,
            retry: None,
            heard: false,
            doubt: None,
            timer: None,
            flows: BTreeMap::new(),
            untold: BTreeSet::new(),
            gone: VecDeque::new(),
            news: VecDeque::new(),
            last: 0,
        };
        client.connect();
        Ok(client)
    }

    /// Add a flow; its number. The answer comes as advice. A refusal because of others (another
    /// client has these packets, no room) is told once and tried again, after half a second and then
    /// at increasing intervals of up to 8 s. Errors: EINVAL (no address, a port or limit out of
    /// range), EAFNOSUPPORT (from IPv4 to IPv6 or the other way).
    pub fn add(&mut self, flow: Flow) -> io::Result<u64> {
        judge(&flow)?;
        self.last += 1;
        let advice = Advice {
            flow: self.last,
            cause: Cause::None,
            rate_bps: 0,
            error: 0,
            rate: None,
        };
        self.flows.insert(
            self.last,
            Entry {
                told: flow,
                advice,
                news: false,
                pause: Duration::ZERO,
                again: None,
                ends: None,
                lost: false,
                known: false,
            },
        );
        self.change(self.last);
        Ok(self.last)
    }

    /// Change the limits of a flow, bit/s. Errors: EINVAL, NotFound.
    pub fn limits(&mut self, flow: u64, floor_bps: u64, ceiling_bps: u64) -> io::Result<()> {
        self.renew(flow, |told| {
            told.floor_bps = floor_bps;
            told.ceiling_bps = ceiling_bps;
        })
    }

    /// Report how the sender works, for paqmctl, in µs. Error: NotFound.
    pub fn timing(&mut self, flow: u64, gop_us: u32, answer_us: u32) -> io::Result<()> {
        self.renew(flow, |told| {
            told.gop_us = gop_us;
            told.answer_us = answer_us;
        })
    }

    /// The flow is no longer sent. Error: NotFound.
    pub fn remove(&mut self, flow: u64) -> io::Result<()> {
        let gone = self.flows.remove(&flow).ok_or(io::ErrorKind::NotFound)?;
        self.untold.remove(&flow);
        // Of what it was never told paqmd need not hear: records would pile up while it hangs.
        if self.fd.is_some() && gone.known {
            self.gone.push_back(records::unregister(flow));
        }
        self.tell();
        Ok(())
    }

    /// Report how the sender followed, for paqmctl: bit/s sent, number of the group of pictures, mean
    /// quantizer. Errors: NotFound, NotConnected, WouldBlock (paqmd is slow: it is lost).
    pub fn status(&mut self, flow: u64, wire_bps: u64, gop: u32, qp: u32) -> io::Result<()> {
        if !self.flows.contains_key(&flow) {
            return Err(io::ErrorKind::NotFound.into());
        }
        match self.put(&records::status(flow, wire_bps, gop, qp)) {
            Some(true) => Ok(()),
            Some(false) => Err(io::ErrorKind::WouldBlock.into()),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Why paqmd is not connected, or that it does not answer; `None` if it does.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The next update; `None` if none comes in time (without a time: wait).
    pub fn next(&mut self, timeout: Option<Duration>) -> Option<Advice> {
        let end = timeout.and_then(|t| Instant::now().checked_add(t));
        loop {
            if let Some(advice) = self.poll() {
                return Some(advice);
            }
            let left = end.map(|e| e.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return None;
            }
            let due = self.due();
            let wait = [left, due].into_iter().flatten().min();
            let room = !self.untold.is_empty() || !self.gone.is_empty();
            sys::wait(self.fd.as_ref(), room, wait);
        }
    }

    /// The next update if there is one. Of several rates for a flow only the newest is told.
    pub fn poll(&mut self) -> Option<Advice> {
        let now = sys::now();
        if self.retry.is_some_and(|at| now >= at) {
            self.connect();
        }
        self.receive();
        if self.doubt.is_some_and(|at| now >= at) {
            self.doubt = None;
            self.trouble = Some("it does not answer".to_owned());
        }
        if self.timer.is_some_and(|at| now >= at) {
            self.look_at_all(now);
        }
        self.tell();
        while let Some(number) = self.news.pop_front() {
            if let Some(flow) = self.flows.get_mut(&number) {
                if std::mem::take(&mut flow.news) {
                    return Some(flow.advice.clone());
                }
            }
        }
        None
    }

    /// For how long a select() of one's own may wait before [`Client::poll`]; `None`: for ever.
    pub fn due(&self) -> Option<Duration> {
        let first = [self.timer, self.doubt, self.retry]
            .into_iter()
            .flatten()
            .min();
        first.map(|at| at.saturating_sub(sys::now()).min(NAP))
    }

    // The connection

    fn connect(&mut self) {
        use std::os::unix::ffi::OsStrExt;
        match sys::dial(self.path.as_os_str().as_bytes()) {
            Ok(fd) => {
                self.fd = Some(fd);
                self.retry = None;
                self.trouble = None;
                self.untold = self.flows.keys().copied().collect();
                self.tell();
            }
            Err(err) => self.lose(&err.to_string()),
        }
    }

    fn lose(&mut self, why: &str) {
        let now = sys::now();
        self.fd = None;
        self.trouble = Some(why.to_owned());
        self.retry = Some(now + RETRY);
        self.heard = false;
        self.doubt = None;
        self.untold.clear();
        self.gone.clear();
        for flow in self.flows.values_mut() {
            flow.pause = Duration::ZERO;
            flow.again = None;
            flow.known = false;
            // A connection that has told nothing prolongs nothing.
            if flow.advice.rate_bps != 0 && !flow.lost {
                flow.lost = true;
                flow.ends = Some(now + GRACE);
                sooner(&mut self.timer, now + GRACE);
            }
        }
    }

    /// Whether a record was taken; `None`: there is no connection.
    fn put(&mut self, record: &[u8]) -> Option<bool> {
        match sys::put(self.fd.as_ref()?, record) {
            Ok(()) => Some(true),
            Err(err) if again(&err) => Some(false),
            Err(err) => {
                self.lose(&err.to_string());
                None
            }
        }
    }

    /// What paqmd does not know yet; flows that are gone first: others may have their ports.
    fn tell(&mut self) {
        while let Some(record) = self.gone.front().cloned() {
            if self.put(&record) != Some(true) {
                return;
            }
            self.gone.pop_front();
        }
        while let Some(number) = self.untold.iter().next().copied() {
            let record = self.flows[&number].told.encode(number);
            if self.put(&record) != Some(true) {
                return;
            }
            self.untold.remove(&number);
            if let Some(flow) = self.flows.get_mut(&number) {
                flow.known = true;
            }
            // paqmd answers each registration at once
            if !self.heard && self.trouble.is_none() {
                sooner(&mut self.doubt, sys::now() + GRACE);
            }
        }
    }

    fn receive(&mut self) {
        let mut record = [0; records::RECORD_MAX];
        for _ in 0..RECORDS_PER_CALL {
            let Some(fd) = &self.fd else { return };
            match sys::take(fd, &mut record) {
                Ok(0) => return self.lose("it closed the connection"),
                // What is no record may be one of a later release.
                Ok(n) => {
                    if let Ok(answer) = records::decode(&record[..n]) {
                        self.on_answer(answer);
                    }
                }
                Err(err) if again(&err) => return,
                Err(err) => return self.lose(&err.to_string()),
            }
        }
    }

    // Flows

    fn on_answer(&mut self, answer: Answer) {
        self.heard = true;
        self.doubt = None;
        self.trouble = None;
        match answer {
            Answer::Registered(cookie, error) => self.on_registered(cookie, error),
            Answer::Rate(rate) => self.on_rate(rate),
        }
    }

    fn change(&mut self, number: u64) {
        if self.fd.is_some() {
            self.untold.insert(number);
        }
        self.tell();
    }

    fn renew(&mut self, number: u64, change: impl FnOnce(&mut Flow)) -> io::Result<()> {
        let flow = self.flows.get_mut(&number).ok_or(io::ErrorKind::NotFound)?;
        let mut told = flow.told.clone();
        change(&mut told);
        judge(&told)?;
        flow.told = told;
        flow.again = None;
        self.change(number);
        Ok(())
    }

    fn on_rate(&mut self, rate: Rate) {
        let Some(flow) = self.flows.get_mut(&rate.cookie) else {
            return;
        };
        // A paqmd that has just started knows nothing yet: what held before is still the best.
        if rate.cause == Cause::None && flow.advice.rate_bps != 0 && flow.lost {
            return;
        }
        flow.lost = false;
        flow.ends = None;
        if rate.rate_bps != 0 {
            let life = 3 * Duration::from_millis(rate.period_ms.into());
            let at = sys::now() + life.clamp(LIFE_MIN, LIFE_MAX) + LIFE_MORE;
            flow.ends = Some(at);
            sooner(&mut self.timer, at);
        }
        let advice = Advice {
            flow: rate.cookie,
            cause: rate.cause,
            rate_bps: rate.rate_bps,
            error: 0,
            rate: Some(rate),
        };
        tell_of(&mut self.news, flow, advice);
    }

    fn on_registered(&mut self, cookie: u64, error: i32) {
        let Some(flow) = self.flows.get_mut(&cookie) else {
            return;
        };
        flow.again = None;
        if error == 0 {
            flow.pause = Duration::ZERO;
            return;
        }
        // Any other error lies in the registration itself, and remains.
        if error != records::EINVAL && error != records::EAFNOSUPPORT {
            // Others may make room, or give up these packets.
            flow.pause = (2 * flow.pause).clamp(AGAIN_MIN, AGAIN_MAX);
            let at = sys::now() + flow.pause;
            flow.again = Some(at);
            sooner(&mut self.timer, at);
        }
        if flow.advice.cause == Cause::Refused && flow.advice.error == error {
            return;
        }
        flow.lost = false;
        flow.ends = None;
        let advice = Advice {
            flow: cookie,
            cause: Cause::Refused,
            rate_bps: 0,
            error,
            rate: None,
        };
        tell_of(&mut self.news, flow, advice);
    }

    /// Refused flows are asked for again; advice that was not renewed ends.
    fn look_at_all(&mut self, now: Duration) {
        self.timer = None;
        for (&number, flow) in &mut self.flows {
            if flow.again.is_some_and(|at| now >= at) {
                flow.again = None;
                self.untold.insert(number);
            }
            if flow.ends.is_some_and(|at| now >= at) {
                // Another paqmd that knows of no advice is no loss.
                let cause = if flow.lost && self.heard {
                    Cause::None
                } else {
                    Cause::Lost
                };
                flow.lost = false;
                flow.ends = None;
                let advice = Advice {
                    flow: number,
                    cause,
                    rate_bps: 0,
                    error: 0,
                    rate: None,
                };
                tell_of(&mut self.news, flow, advice);
            }
            for at in [flow.again, flow.ends].into_iter().flatten() {
                sooner(&mut self.timer, at);
            }
        }
    }
}

impl AsRawFd for Client {
    /// The socket; -1 while there is none, and another one after each connection.
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

fn tell_of(news: &mut VecDeque<u64>, flow: &mut Entry, advice: Advice) {
    if !std::mem::replace(&mut flow.news, true) {
        news.push_back(advice.flow);
    }
    flow.advice = advice;
}

fn sooner(timer: &mut Option<Duration>, at: Duration) {
    *timer = Some(timer.map_or(at, |t| t.min(at)));
}

fn again(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn judge(flow: &Flow) -> io::Result<()> {
    match flow.fault() {
        0 => Ok(()),
        fault => Err(io::Error::from_raw_os_error(fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    /// Flows that come and go while paqmd hangs leave nothing behind: it was not told of them.
    #[test]
    fn hang_leaves_nothing() {
        let mut client = Client::open(Some(Path::new("/nonexistent/paqmd"))).unwrap();
        let (ours, _paqmd) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        client.fd = Some(ours.into());
        let flow = Flow {
            source: None,
            source_port: 5004,
            destination: "192.0.2.7".parse().unwrap(),
            destination_port: 5006,
            ssrc: 0,
            floor_bps: 0,
            ceiling_bps: 1_000_000,
            gop_us: 0,
            answer_us: 0,
        };
        for _ in 0..5000 {
            let number = client.add(flow.clone()).unwrap();
            client.remove(number).unwrap();
        }
        assert!(client.gone.len() + client.untold.len() < 1000);
    }

    /// Nobody waits for long in one go where advice may end: the machine may sleep meanwhile.
    #[test]
    fn waits_are_short() {
        let mut client = Client::open(Some(Path::new("/nonexistent/paqmd"))).unwrap();
        client.retry = None;
        assert_eq!(client.due(), None);
        sooner(&mut client.timer, sys::now() + LIFE_MAX);
        assert!(client.due().is_some_and(|wait| wait <= NAP));
    }
}
