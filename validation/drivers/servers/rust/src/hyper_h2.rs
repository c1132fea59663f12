// hyper's h2: a server's connection over a pipe in memory, which takes one DATA frame at a time.
use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::SendStream;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::{pin, Pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub const NAME: &str = "hyper h2";
const FRAME: usize = 1200;

#[derive(Default)]
struct State { input: VecDeque<u8>, output: Vec<u8>, is_open: bool }
struct Pipe(Rc<RefCell<State>>);

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let mut state = self.0.borrow_mut();
        let n = to.remaining().min(state.input.len());
        if n == 0 { return Poll::Pending; }
        to.put_slice(&state.input.drain(..n).collect::<Vec<_>>());
        Poll::Ready(Ok(()))
    }
}
impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, from: &[u8]) -> Poll<std::io::Result<usize>> {
        let mut state = self.0.borrow_mut();
        let n_before = state.output.len();
        state.output.extend(from);
        let Some((end, _)) = first_data(&state.output).filter(|(end, _)| *end <= n_before + from.len()) else {
            return Poll::Ready(Ok(from.len()));
        };
        state.output.truncate(end - 1); // all but its last byte: then h2 chooses another frame
        if end - 1 > n_before { return Poll::Ready(Ok(end - 1 - n_before)); }
        if !std::mem::take(&mut state.is_open) { return Poll::Pending; }
        state.output.clear();
        Poll::Ready(Ok(1))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> { Poll::Ready(Ok(())) }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> { Poll::Ready(Ok(())) }
}

/// Where the first DATA frame ends, and of which stream it is.
fn first_data(bytes: &[u8]) -> Option<(usize, i64)> {
    let (mut at, mut head) = (0, bytes.get(..9)?);
    while head[3] != 0 {
        at += 9 + u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        head = bytes.get(at..at + 9)?;
    }
    let n = 9 + u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    Some((at + n, (u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as i64 - 1) / 2))
}

pub struct Server {
    h2: Connection<Pipe, Bytes>,
    pipe: Rc<RefCell<State>>,
    responses: HashMap<i64, SendResponse<Bytes>>,
    streams: HashMap<i64, SendStream<Bytes>>,
    pushed: Vec<i64>,
}

fn id_of(stream: i64) -> u32 { 2 * stream as u32 + 1 }

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let n = (payload.len() as u32).to_be_bytes();
    [&n[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

impl Server {
    pub fn new() -> Self {
        let pipe = Rc::new(RefCell::new(State::default()));
        let input = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]), // SETTINGS_INITIAL_WINDOW_SIZE
            frame(4, 1, 0, &[]),
            frame(8, 0, 0, &[0x7f, 0xff, 0, 0]), // WINDOW_UPDATE
        ];
        pipe.borrow_mut().input.extend(input.concat());
        let mut builder = h2::server::Builder::new();
        builder.max_send_buffer_size(1 << 30);
        let handshake = pin!(builder.handshake(Pipe(pipe.clone())));
        let Poll::Ready(Ok(h2)) = handshake.poll(&mut Context::from_waker(Waker::noop())) else { panic!("no handshake") };
        let mut server = Server { h2, pipe, responses: HashMap::new(), streams: HashMap::new(), pushed: Vec::new() };
        server.poll();
        server
    }
    fn poll(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(accepted) = self.h2.poll_accept(&mut context) {
            let (request, response) = accepted.expect("a connection").expect("a request");
            drop(request);
            self.responses.insert((response.stream_id().as_u32() as i64 - 1) / 2, response);
        }
    }
    pub fn open(&mut self, id: i64, urgency: u8, incremental: bool) {
        let field = format!("u={urgency}{}", if incremental { ",i" } else { "" });
        let head = b"\x82\x87\x84\x41\x01a\x00\x08priority"; // GET https://a/, HPACK
        let request = [&head[..], &[field.len() as u8], field.as_bytes()].concat();
        self.pipe.borrow_mut().input.extend(frame(1, 5, id_of(id), &request));
        self.poll();
    }
    pub fn update(&mut self, id: i64, urgency: u8, incremental: bool) {
        let field = format!("u={urgency}{}", if incremental { ",i" } else { "" });
        let update = [&id_of(id).to_be_bytes(), field.as_bytes()].concat();
        self.pipe.borrow_mut().input.extend(frame(16, 0, 0, &update));
        self.poll();
    }
    pub fn push(&mut self, id: i64) { self.pushed.push(id); }
    pub fn close(&mut self, id: i64) {
        self.pushed.retain(|other| *other != id);
        self.streams.remove(&id);
    }
    fn write(&mut self, id: i64) {
        if let Some(mut response) = self.responses.remove(&id) {
            let head = http::Response::new(());
            self.streams.insert(id, response.send_response(head, false).expect("a response"));
        }
        let stream = self.streams.get_mut(&id).expect("a response");
        stream.send_data(Bytes::from_static(&[0; FRAME]), false).expect("data");
    }
    pub fn next(&mut self) -> Option<i64> {
        // Only now: h2 sends what it has whenever it reads, as long as its pipe is not full.
        for id in std::mem::take(&mut self.pushed) { self.write(id); }
        let is_sent = first_data(&self.pipe.borrow().output).is_some();
        self.pipe.borrow_mut().is_open = is_sent;
        self.poll();
        first_data(&self.pipe.borrow().output).map(|(_, id)| id)
    }
}
