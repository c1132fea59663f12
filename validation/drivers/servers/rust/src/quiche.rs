// Cloudflare's quiche: a server's connection and a client's, over packets in memory. Streams are the
// server's own, with the priorities that quiche's HTTP/3 gives to responses.
use std::net::SocketAddr;

pub const NAME: &str = "quiche";
const FRAME: usize = 1000; // and no more than a packet has room for
const OFFSET: u8 = 124; // as h3::send_response_with_priority

pub struct Server { server: quiche::Connection, client: quiche::Connection }

fn config(folder: &str) -> quiche::Config {
    let mut c = quiche::Config::new(quiche::PROTOCOL_VERSION).expect("a configuration");
    c.load_cert_chain_from_pem_file(&format!("{folder}/certificate.pem")).expect("certificate.pem");
    c.load_priv_key_from_pem_file(&format!("{folder}/key.pem")).expect("key.pem");
    c.set_application_protos(&[b"h3"]).expect("a protocol");
    c.set_initial_max_data(1 << 40);
    c.set_initial_max_stream_data_uni(1 << 30);
    c.set_initial_max_streams_uni(1 << 40);
    c.set_initial_congestion_window_packets(1 << 16);
    c.verify_peer(false);
    c
}

fn id_of(stream: i64) -> u64 { 4 * stream as u64 + 3 }

impl Server {
    pub fn new() -> Self {
        let at: SocketAddr = "127.0.0.1:4433".parse().expect("an address");
        let id = quiche::ConnectionId::from_ref(&[1; 16]);
        let mut config = config(&std::env::args().nth(1).expect("the folder of a certificate"));
        let client = quiche::connect(None, &id, at, at, &mut config).expect("a client");
        let server = quiche::accept(&id, None, at, at, &mut config).expect("a server");
        let mut both = Server { server, client };
        while !both.server.is_established() || !both.client.is_established() { both.exchange(); both.send(); }
        for _ in 0..4 { both.send(); both.exchange(); }
        both
    }
    fn exchange(&mut self) { // what the client says
        let mut bytes = [0; 1500];
        while let Ok((n, at)) = self.client.send(&mut bytes) {
            self.server.recv(&mut bytes[..n], quiche::RecvInfo { from: at.from, to: at.to }).expect("a packet");
        }
    }
    fn send(&mut self) -> bool {
        let mut bytes = [0; 1500];
        let Ok((n, at)) = self.server.send(&mut bytes) else { return false };
        self.client.recv(&mut bytes[..n], quiche::RecvInfo { from: at.from, to: at.to }).expect("a packet");
        true
    }
    pub fn open(&mut self, id: i64, urgency: u8, incremental: bool) { self.update(id, urgency, incremental); }
    pub fn update(&mut self, id: i64, urgency: u8, incremental: bool) {
        self.server.stream_priority(id_of(id), OFFSET + urgency, incremental).expect("a stream");
    }
    pub fn push(&mut self, id: i64) {
        assert_eq!(self.server.stream_send(id_of(id), &[0; FRAME], false), Ok(FRAME));
    }
    pub fn close(&mut self, _id: i64) {}
    pub fn next(&mut self) -> Option<i64> {
        while self.send() {
            let ids: Vec<u64> = self.client.readable().collect();
            for id in &ids { while self.client.stream_recv(*id, &mut [0; 4096]).is_ok() {} }
            self.exchange();
            assert!(ids.len() < 2, "a packet has one stream's frame");
            if let Some(id) = ids.first() { return Some((*id as i64 - 3) / 4); }
        }
        None
    }
}
