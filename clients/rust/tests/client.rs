// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A client without paqmd.

use std::path::Path;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use paqmclient::Client;

/// No time is too long to wait.
#[test]
fn waits_for_ever() {
    let mut client = Client::open(Some(Path::new("/nonexistent/paqmd"))).unwrap();
    assert!(client.next(Some(Duration::ZERO)).is_none());
    let (ends, ended) = channel::<()>();
    thread::spawn(move || {
        let _ends = ends; // dropped when it returns or panics
        client.next(Some(Duration::MAX))
    });
    let got = ended.recv_timeout(Duration::from_secs(1));
    assert_eq!(got, Err(RecvTimeoutError::Timeout));
}
