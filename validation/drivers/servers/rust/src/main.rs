// Drivers of schedulers of deployed servers in Rust: `h3sim-servers`, over h3sim-conformance/1; a
// feature of the package says which.
//
// Each active stream has a frame to send, and another once that is sent. Real code chooses and sends
// in one step, so a pick goes a frame ahead of the history; if what follows is not its charge, the
// history is run again in a new scheduler. Data cannot be taken back: a stream that is deactivated with
// a frame unsent had, in the history that is run again, nothing since its last charge.
use std::io::{self, BufRead, Write};

#[cfg(feature = "hyper-h2")]
#[path = "hyper_h2.rs"]
mod server;
#[cfg(feature = "quiche")]
#[path = "quiche.rs"]
mod server;

// With nghttp2-crate only that library is wanted, of which a driver in C is made.
#[cfg(not(any(feature = "hyper-h2", feature = "quiche")))]
mod server {
    pub const NAME: &str = "nothing";
    pub struct Server;
    impl Server {
        pub fn new() -> Self { Server }
        pub fn open(&mut self, _: i64, _: u8, _: bool) {}
        pub fn update(&mut self, _: i64, _: u8, _: bool) {}
        pub fn push(&mut self, _: i64) {}
        pub fn close(&mut self, _: i64) {}
        pub fn next(&mut self) -> Option<i64> { None }
    }
}

#[derive(Clone, Default)]
struct Request { op: String, stream: i64, urgency: u8, incremental: bool }

fn number(line: &str, key: &str) -> Option<i64> {
    let rest = &line[line.find(key)? + key.len()..];
    rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

#[derive(Default)]
struct Driver { real: Option<server::Server>, history: Vec<Request>, ahead: Option<i64>, sent: Option<i64>, active: Vec<i64> }

impl Driver {
    fn apply(&mut self, r: &Request) {
        let ends = r.op == "deactivate" || r.op == "close";
        let real = self.real.as_mut().expect("a scheduler");
        if let Some(id) = self.sent.take().filter(|id| !(ends && *id == r.stream)) { real.push(id); }
        match r.op.as_str() {
            "open" => real.open(r.stream, r.urgency, r.incremental),
            "update" => real.update(r.stream, r.urgency, r.incremental),
            "activate" => real.push(r.stream),
            "charge" => self.sent = self.ahead.take().or_else(|| real.next()),
            "close" => real.close(r.stream),
            _ => (),
        }
    }
    fn pick(&mut self) -> Option<i64> {
        if self.active.is_empty() { return None; } // as a server that has nothing to send is not asked
        if self.real.is_none() {
            (self.real, self.sent, self.ahead) = (Some(server::Server::new()), None, None);
            for r in self.history.clone() { self.apply(&r); }
        }
        if self.ahead.is_none() {
            let real = self.real.as_mut().expect("a scheduler");
            if let Some(id) = self.sent.take() { real.push(id); }
            self.ahead = real.next();
        }
        self.ahead
    }
    fn note(&mut self, r: Request) {
        let id = r.stream;
        let (was_active, ends) = (self.active.contains(&id), r.op == "deactivate" || r.op == "close");
        if r.op == "charge" && self.pick() != Some(id) { return; } // a retransmission
        if (r.op == "activate" && was_active) || (r.op == "deactivate" && !was_active) { return; }
        if self.ahead.is_some() && r.op != "charge" { self.real = None; }
        if ends { self.active.retain(|other| *other != id); } else if r.op == "activate" { self.active.push(id); }
        let last = self.history.last().is_some_and(|l| l.op == "charge" && l.stream == id);
        if ends && was_active && !last { // its frame was never there
            let n = self.history.iter().rposition(|l| l.stream == id && (l.op == "charge" || l.op == "activate"));
            let n = n.expect("what made it active");
            let end = Request { op: "deactivate".into(), stream: id, ..Default::default() };
            if self.history[n].op == "charge" { self.history.insert(n + 1, end); } else { self.history.remove(n); }
            self.real = None;
        }
        if self.real.is_some() { self.apply(&r); }
        self.history.push(r);
    }
}

fn main() -> io::Result<()> {
    let mut d = Driver::default();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let op = line.split('"').nth(3).unwrap_or_default().to_string();
        match op.as_str() {
            "hello" => println!(r#"{{"protocol":"h3sim-conformance/1","name":"{}"}}"#, server::NAME),
            "reset" => d = Driver::default(),
            "pick" => match d.pick() {
                Some(id) => println!("{{\"stream\":{id}}}"),
                None => println!("{{\"stream\":null}}"),
            },
            _ => d.note(Request {
                op, stream: number(&line, "\"stream\":").unwrap_or(0),
                urgency: number(&line, "\"urgency\":").unwrap_or(3) as u8,
                incremental: line.contains("\"incremental\":true"),
            }),
        }
        io::stdout().flush()?;
    }
    Ok(())
}
