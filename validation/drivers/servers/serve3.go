package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
)

// serve3 answers requests with the header field bytes: N, or for /?bytes=N, with N bytes over HTTP/3,
// prints its port, and writes a qlog of each connection into the folder QLOGDIR.
func serve3(certificate, key string) error {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port)
	answer := func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.Header.Get("bytes"))
		if err != nil {
			n, _ = strconv.Atoi(r.URL.Query().Get("bytes"))
		}
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.Write(make([]byte, n))
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	server := &http3.Server{
		Handler:    http.HandlerFunc(answer),
		QUICConfig: &quic.Config{Tracer: qlog.DefaultConnectionTracer},
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
	}
	return server.Serve(socket)
}
