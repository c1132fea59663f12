package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
)

// serve answers /N.bin with N bytes over HTTP/2 in cleartext, scheduled by RFC 9218, and prints its
// port. The handler has all bytes in one Write, or with copies, as io.Copy and files do, 32 KiB each.
func serve(copies bool) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	answer := func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimSuffix(r.URL.Path[1:], ".bin"))
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.Header().Set("Content-Type", "application/octet-stream")
		if copies {
			io.Copy(w, io.LimitReader(zeros{}, int64(n)))
		} else {
			w.Write(make([]byte, n))
		}
	}
	server := &http2.Server{NewWriteScheduler: http2.H3simNewRFC9218}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		conn.(*net.TCPConn).SetWriteBuffer(16 << 10) // as if the path were slow
		go server.ServeConn(conn, &http2.ServeConnOpts{Handler: http.HandlerFunc(answer)})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
