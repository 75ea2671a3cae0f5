// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Records against the vectors that a C compiler laid out, and many broken ones.

use std::collections::BTreeMap;

use paqmclient::records::{self, Answer};
use paqmclient::{Cause, Flow};

struct Vector {
    way: String,
    kind: String,
    fields: BTreeMap<String, String>,
    record: Vec<u8>,
}

impl Vector {
    fn number<T: std::str::FromStr + Default>(&self, key: &str) -> T {
        self.fields[key].parse().unwrap_or_default()
    }
}

fn vectors() -> Vec<Vector> {
    let text = include_str!("../../vectors/records.txt");
    let mut lines = text.lines();
    let order = if cfg!(target_endian = "little") {
        "little"
    } else {
        "big"
    };
    if !lines
        .next()
        .unwrap()
        .contains(&format!("Byte order: {order}."))
    {
        return Vec::new();
    }
    lines
        .map(|line| {
            let mut words: Vec<&str> = line.split(' ').collect();
            let hex = words.pop().unwrap();
            let record = (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap());
            let pair = |word: &&str| {
                word.split_once('=')
                    .map(|(k, v)| (k.into(), v.into()))
                    .unwrap()
            };
            Vector {
                way: words[0].into(),
                kind: words[1].into(),
                record: record.collect(),
                fields: words[2..].iter().map(pair).collect(),
            }
        })
        .collect()
}

fn made(v: &Vector) -> Vec<u8> {
    let cookie = v.number("cookie");
    match v.kind.as_str() {
        "unregister" => records::unregister(cookie),
        "status" => records::status(
            cookie,
            v.number("wire_bps"),
            v.number("gop"),
            v.number("qp"),
        ),
        _ => Flow {
            source: v.fields["source"].parse().ok(),
            source_port: v.number("source_port"),
            destination_port: v.number("destination_port"),
            ssrc: v.number("ssrc"),
            floor_bps: v.number("floor_bps"),
            ceiling_bps: v.number("ceiling_bps"),
            gop_us: v.number("gop_us"),
            answer_us: v.number("answer_us"),
            ..Flow::to(v.fields["destination"].parse().unwrap())
        }
        .encode(cookie),
    }
}

fn shown(answer: &Answer) -> BTreeMap<String, String> {
    let pairs: Vec<(&str, String)> = match answer {
        Answer::Registered(cookie, error) => {
            vec![("cookie", cookie.to_string()), ("error", error.to_string())]
        }
        Answer::Rate(r) => vec![
            ("cookie", r.cookie.to_string()),
            ("cause", format!("{:?}", r.cause).to_lowercase()),
            ("rate_bps", r.rate_bps.to_string()),
            ("router_id", r.router_id.to_string()),
            ("router", r.router.map_or(String::new(), |a| a.to_string())),
            ("value", r.value.to_string()),
            ("seq", r.seq.to_string()),
            ("period_ms", r.period_ms.to_string()),
            (
                "qdelay_ms",
                format!("{:.1}", f64::from(r.qdelay_100us) / 10.0),
            ),
            ("overload", u8::from(r.overload).to_string()),
            ("policed", u8::from(r.policed).to_string()),
            ("final", u8::from(r.is_final).to_string()),
            ("auth", u8::from(r.auth).to_string()),
            ("routers", r.routers.to_string()),
            ("captured_ns", r.captured_ns.to_string()),
        ],
    };
    pairs.into_iter().map(|(k, v)| (k.to_string(), v)).collect()
}

#[test]
fn records_are_those_of_the_compiler() {
    for v in vectors() {
        if v.way == "send" {
            assert_eq!(made(&v), v.record, "{} {:?}", v.kind, v.fields);
            continue;
        }
        match records::decode(&v.record) {
            Ok(_) if v.kind == "refused" => panic!("taken in spite of: {}", v.fields["reason"]),
            Ok(answer) => assert_eq!(shown(&answer), v.fields),
            Err(why) => assert_eq!(v.kind, "refused", "{why}: {:?}", v.fields),
        }
    }
}

#[test]
fn impossible_flows_are_refused() {
    let good = Flow {
        source_port: 1,
        destination_port: 1,
        ..Flow::to("192.0.2.1".parse().unwrap())
    };
    assert_eq!(good.fault(), 0);
    assert_eq!(
        Flow {
            source: "::".parse().ok(),
            ..good.clone()
        }
        .fault(),
        0
    );
    assert_eq!(
        Flow {
            source: "2001:db8::1".parse().ok(),
            ..good.clone()
        }
        .fault(),
        97
    );
    for bad in [
        Flow {
            source_port: 0,
            ..good.clone()
        },
        Flow {
            destination: "::ffff:0.0.0.0".parse().unwrap(),
            ..good.clone()
        },
        Flow {
            ceiling_bps: 0,
            ..good.clone()
        },
        Flow {
            ceiling_bps: records::RATE_MAX + 1,
            ..good.clone()
        },
        Flow {
            floor_bps: 2,
            ceiling_bps: 1,
            ..good
        },
    ] {
        assert_eq!(bad.fault(), 22, "{bad:?}");
    }
}

/// Whatever comes is decoded or refused, nothing else: half a million broken records.
#[test]
fn broken_records_do_no_harm() {
    let all = vectors();
    let mut state = 1u64; // xorshift64 (Marsaglia 2003)
    let mut dice = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut taken = 0;
    for _ in 0..500_000 {
        if all.is_empty() {
            return;
        }
        let mut record = all[dice(all.len())].record.clone();
        for _ in 0..dice(4) {
            let at = dice(record.len());
            record[at] = dice(256) as u8;
        }
        let len = if dice(2) == 0 {
            record.len()
        } else {
            dice(600)
        };
        record.truncate(len);
        match records::decode(&record) {
            Ok(Answer::Rate(r)) => {
                assert!(record.len() >= 72 && !matches!(r.cause, Cause::Lost | Cause::Refused));
                taken += 1;
            }
            Ok(Answer::Registered(..)) => taken += 1,
            Err(_) => (),
        }
    }
    assert!(
        (50_000..450_000).contains(&taken),
        "{taken} were taken: the loop tests little"
    );
}
