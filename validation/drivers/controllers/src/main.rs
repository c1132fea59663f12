//! Driver of quinn's congestion controllers over h3sim-controller/1: `h3sim-quinn cubic|newreno|bbr`.
//!
//! src/congestion/ is that of quinn-proto; what it imports of its crate is below. Quinn reports
//! persistent congestion with a loss, so a timer is a loss of its own; it has no undo. It paces by
//! window and round-trip time, whatever the controller says.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
pub(crate) use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[allow(dead_code, unused_imports)]
mod congestion;

mod connection {
    use std::time::Duration;

    pub struct RttEstimator {
        pub latest: Duration,
        pub smoothed: Duration,
        pub least: Duration,
    }

    #[allow(dead_code)]
    impl RttEstimator {
        pub fn get(&self) -> Duration {
            self.smoothed
        }
        pub fn conservative(&self) -> Duration {
            self.smoothed.max(self.latest)
        }
        pub fn min(&self) -> Duration {
            self.least
        }
    }
}

use congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};

fn made(name: &str, at: Instant, size: u16, window: u64) -> Box<dyn Controller> {
    match name {
        "newreno" => {
            let mut config = NewRenoConfig::default();
            config.initial_window(window);
            Arc::new(config).build(at, size)
        }
        "bbr" => {
            let mut config = BbrConfig::default();
            config.initial_window(window);
            Arc::new(config).build(at, size)
        }
        _ => {
            let mut config = CubicConfig::default();
            config.initial_window(window);
            Arc::new(config).build(at, size)
        }
    }
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let base = Instant::now();
    // Packets leave after the connection began.
    let at = |ns: u64| base + Duration::from_secs(1) + Duration::from_nanos(ns);
    let mut real = made(&name, base, 1200, 12000);
    let mut smoothed_rtt_ns = 0;
    let mut packets: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(event) = serde_json::from_str::<Value>(&line) else { return };
        let number = |key: &str| event[key].as_u64().unwrap_or(0);
        let numbers = || event["numbers"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let now = at(number("at_ns"));
        match event["op"].as_str().unwrap_or("") {
            "hello" => {
                writeln!(output, "{}", json!({"protocol": "h3sim-controller/1"})).unwrap();
                output.flush().unwrap();
            }
            "new" => {
                let size = number("max_datagram_bytes") as u16;
                real = made(&name, base, size, number("initial_window_bytes"));
                packets.clear();
            }
            "sent" => {
                packets.insert(number("number"), (number("at_ns"), number("bytes")));
                real.on_sent(now, number("bytes"), number("number"));
            }
            "acked" => {
                let rtt = connection::RttEstimator {
                    latest: Duration::from_nanos(number("latest_rtt_ns")),
                    smoothed: Duration::from_nanos(number("smoothed_rtt_ns")),
                    least: Duration::from_nanos(number("min_rtt_ns")),
                };
                smoothed_rtt_ns = number("smoothed_rtt_ns");
                let unused = event["unused"].as_bool().unwrap_or(false);
                let (mut in_flight, mut largest) = (number("in_flight"), None);
                for each in numbers() {
                    if let Some((sent_ns, bytes)) = packets.remove(&each) {
                        in_flight -= bytes.min(in_flight);
                        largest = Some(each);
                        real.on_ack(now, at(sent_ns), bytes, unused, &rtt);
                    }
                }
                real.on_end_acks(now, in_flight, unused, largest);
            }
            "lost" => {
                let gone: Vec<_> = numbers().filter_map(|each| packets.remove(&each)).collect();
                let bytes = gone.iter().map(|each| each.1).sum();
                if let Some(newest) = gone.iter().map(|each| each.0).max() {
                    real.on_congestion_event(now, at(newest), false, bytes);
                }
            }
            "marked" => real.on_congestion_event(now, at(number("sent_at_ns")), false, 0),
            "timer" => real.on_congestion_event(now, now, true, 0),
            "state" => {
                let metrics = real.metrics();
                let ssthresh = metrics.ssthresh.filter(|bytes| *bytes < 1 << 62);
                // 1.25 windows per round trip (connection/pacing.rs).
                let rate = (real.window() * 10_000_000_000).checked_div(smoothed_rtt_ns);
                let state = json!({"window": real.window(), "ssthresh": ssthresh, "rate_bps": rate});
                writeln!(output, "{state}").unwrap();
                output.flush().unwrap();
            }
            _ => {}
        }
    }
}
