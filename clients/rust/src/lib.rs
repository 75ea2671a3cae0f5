// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Follow the rate advice of P-AQM routers: a client of paqmd on the standard library alone.
//!
//! The rules are those of libpaqmclient (docs/api-libpaqmclient.md): the same causes, grace and
//! pauses. A rate is an upper bound in bit/s at the IP level, headers included. Send no more; follow
//! it within a frame; keep your own congestion control, and rely on it alone while there is no advice
//! (`rate_bps` 0). paqmd may be absent, start later or be restarted.
//!
//! ```no_run
//! use paqmclient::{Client, Flow};
//! let mut client = Client::open(None)?;
//! let flow = Flow { source_port: 5004, destination_port: 6000, ceiling_bps: 3_000_000,
//!                   ..Flow::to("192.0.2.7".parse().unwrap()) };
//! client.add(flow)?;
//! while let Some(advice) = client.next(None) {
//!     println!("{:?} {}", advice.cause, advice.rate_bps);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
#![warn(missing_docs)]

mod client;
pub mod records;
mod sys;

pub use client::{Advice, Client, GRACE, PATH};
pub use records::{Cause, Flow, Rate};
