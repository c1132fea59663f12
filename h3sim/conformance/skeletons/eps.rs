// Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
// Replace what the methods of `Scheduler` do by calls of yours. It needs no crate.
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

struct Stream { urgency: i64, incremental: bool, turn: Option<i64> } // no turn: nothing to send

#[derive(Default)]
struct Scheduler { streams: BTreeMap<i64, Stream>, now: i64 }

impl Scheduler {
    fn open(&mut self, id: i64, urgency: i64, incremental: bool) {
        self.streams.insert(id, Stream { urgency, incremental, turn: None });
    }
    fn update(&mut self, id: i64, urgency: i64, incremental: bool) {
        let Some(s) = self.streams.get_mut(&id) else { return };
        if (s.urgency, s.incremental) != (urgency, incremental) {
            *s = Stream { urgency, incremental, turn: s.turn.and(Some(self.now)) };
        }
    }
    fn activate(&mut self, id: i64) {
        if let Some(s) = self.streams.get_mut(&id) { s.turn = s.turn.or(Some(self.now)); }
    }
    fn deactivate(&mut self, id: i64) {
        if let Some(s) = self.streams.get_mut(&id) { s.turn = None; }
    }
    fn close(&mut self, id: i64) { self.streams.remove(&id); }
    fn charge(&mut self, id: i64, _bytes: i64) {
        if let Some(s) = self.streams.get_mut(&id) { s.turn = Some(self.now); }
    }
    fn pick(&self) -> Option<i64> {
        let ready = self.streams.iter().filter(|(_, s)| s.turn.is_some());
        let first = ready.min_by_key(|(id, s)| {
            (s.urgency, s.incremental, if s.incremental { s.turn } else { Some(**id) })
        });
        first.map(|(id, _)| *id)
    }
}

// Requests have their keys in a fixed order.
fn number(line: &str, key: &str) -> Option<i64> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn main() -> io::Result<()> {
    let mut scheduler = Scheduler::default();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let id = number(&line, "\"stream\":").unwrap_or(-1);
        let urgency = number(&line, "\"urgency\":").unwrap_or(3);
        let incremental = line.contains("\"incremental\":true");
        scheduler.now += 1;
        match line.split('"').nth(3).unwrap_or_default() {
            "hello" => println!(r#"{{"protocol":"h3sim-conformance/1","name":"rust-eps"}}"#),
            "reset" => scheduler = Scheduler::default(),
            "open" => scheduler.open(id, urgency, incremental),
            "update" => scheduler.update(id, urgency, incremental),
            "activate" => scheduler.activate(id),
            "deactivate" => scheduler.deactivate(id),
            "close" => scheduler.close(id),
            "charge" => scheduler.charge(id, number(&line, "\"bytes\":").unwrap_or(0)),
            "pick" => match scheduler.pick() {
                Some(id) => println!("{{\"stream\":{id}}}"),
                None => println!("{{\"stream\":null}}"),
            },
            _ => {}
        }
        io::stdout().flush()?;
    }
    Ok(())
}
