// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Registers flows by commands on standard input and prints advice, a JSON object in each line.
//!
//! ```text
//! add SOURCE-PORT DESTINATION PORT SSRC FLOOR CEILING      answered by {"added": FLOW}
//! limits FLOW FLOOR CEILING
//! timing FLOW GOP-US ANSWER-US
//! status FLOW BPS GOP QP
//! remove FLOW
//! ```

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{channel, TryRecvError};
use std::time::Duration;

use paqmclient::{Advice, Cause, Client, Flow};

/// One line of output; who reads may have left, and then there is nothing more to do.
fn print(line: &str) {
    if writeln!(io::stdout(), "{line}").is_err() {
        std::process::exit(1);
    }
}

/// The answer to a command for a flow.
fn to_flow(flow: &str, answer: io::Result<()>) -> Result<(), Box<dyn Error>> {
    match answer {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            Err(format!("there is no flow {flow}").into())
        }
        other => Ok(other?),
    }
}

fn obey(client: &mut Client, line: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["add", sport, to, dport, ssrc, floor, ceiling] => {
            let flow = client.add(Flow {
                source_port: sport.parse()?,
                destination_port: dport.parse()?,
                ssrc: ssrc.parse()?,
                floor_bps: floor.parse()?,
                ceiling_bps: ceiling.parse()?,
                ..Flow::to(to.parse()?)
            })?;
            print(&format!("{{\"added\": {flow}}}"));
        }
        ["limits", flow, floor, ceiling] => to_flow(
            flow,
            client.limits(flow.parse()?, floor.parse()?, ceiling.parse()?),
        )?,
        ["timing", flow, gop, answer] => to_flow(
            flow,
            client.timing(flow.parse()?, gop.parse()?, answer.parse()?),
        )?,
        ["status", flow, bps, gop, qp] => to_flow(
            flow,
            client.status(flow.parse()?, bps.parse()?, gop.parse()?, qp.parse()?),
        )?,
        ["remove", flow] => to_flow(flow, client.remove(flow.parse()?))?,
        [] => (), // an empty line
        _ => return Err("expected add, limits, timing, status or remove".into()),
    }
    Ok(())
}

fn show(a: &Advice) {
    let cause = match a.cause {
        Cause::Other(number) => format!("other {number}"),
        cause => format!("{cause:?}").to_lowercase(),
    };
    let said = a.rate.as_ref();
    let router = said.filter(|r| r.routers > 0).and_then(|r| r.router);
    print(&format!(
        "{{\"flow\": {}, \"cause\": \"{cause}\", \"rate_bps\": {}, \"error\": {}, \"router\": \"{}\", \
         \"seq\": {}, \"policed\": {}, \"overload\": {}}}",
        a.flow,
        a.rate_bps,
        a.error,
        router.map_or(String::new(), |r| r.to_string()),
        said.map_or(0, |r| r.seq),
        said.is_some_and(|r| r.policed),
        said.is_some_and(|r| r.overload),
    ));
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut client = Client::open(None)?;
    let (to, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    loop {
        match commands.try_recv() {
            Ok(line) => {
                if let Err(err) = obey(&mut client, &line) {
                    print(&format!("{{\"failed\": \"{err}\"}}"));
                }
                continue;
            }
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => (),
        }
        if let Some(advice) = client.next(Some(Duration::from_millis(20))) {
            show(&advice);
        }
    }
}
