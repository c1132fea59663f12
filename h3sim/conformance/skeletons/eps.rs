// Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
// It needs no crate: requests have their keys in a fixed order.
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

#[derive(Default)]
struct Stream {
    urgency: i64,
    incremental: bool,
    active: bool,
    place: i64, // its turn among incremental streams
}

fn number(line: &str, key: &str) -> Option<i64> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut streams: BTreeMap<i64, Stream> = BTreeMap::new();
    for (now, line) in (1i64..).zip(io::stdin().lock().lines()) {
        let line = line?;
        let op = line.split('"').nth(3).unwrap_or_default();
        let id = number(&line, "\"stream\":").unwrap_or(-1);
        match op {
            "hello" => {
                writeln!(out, r#"{{"protocol":"h3sim-conformance/1","name":"rust-eps"}}"#)?;
                out.flush()?;
            }
            "reset" => streams.clear(),
            "open" | "update" => {
                let urgency = number(&line, "\"urgency\":").unwrap_or(3);
                let incremental = line.contains("\"incremental\":true");
                let s = streams.entry(id).or_default();
                if (s.urgency, s.incremental) != (urgency, incremental) {
                    (s.urgency, s.incremental, s.place) = (urgency, incremental, now);
                }
            }
            "close" => drop(streams.remove(&id)),
            "pick" => {
                let key = |(id, s): &(&i64, &Stream)| {
                    (s.urgency, s.incremental, if s.incremental { s.place } else { **id })
                };
                match streams.iter().filter(|(_, s)| s.active).min_by_key(key) {
                    Some((id, _)) => writeln!(out, "{{\"stream\":{id}}}")?,
                    None => writeln!(out, "{{\"stream\":null}}")?,
                }
                out.flush()?;
            }
            _ => {
                let s = streams.get_mut(&id).expect("an open stream");
                if op == "charge" || (op == "activate" && !s.active) { s.place = now; }
                if op != "charge" { s.active = op == "activate"; }
            }
        }
    }
    Ok(())
}
