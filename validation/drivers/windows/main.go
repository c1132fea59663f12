// HTTP/2 in cleartext by net/http: `windows serve` prints its port, answers /N with N bytes, and
// reads what is sent to it; `windows get URL` and `windows put URL BYTES` print the seconds of the
// second exchange of a connection.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(io.Discard, r.Body)
	n, _ := strconv.Atoi(r.URL.Path[1:])
	if err == nil {
		w.Write(make([]byte, n))
	}
}

func exchange(client *http.Client, method, url string, body []byte) {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	check(err)
	response, err := client.Do(request)
	check(err)
	_, err = io.Copy(io.Discard, response.Body)
	check(err)
	response.Body.Close()
}

func main() {
	var cleartext http.Protocols
	cleartext.SetUnencryptedHTTP2(true)
	if os.Args[1] == "serve" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		fmt.Println(listener.Addr().(*net.TCPAddr).Port)
		check((&http.Server{Handler: http.HandlerFunc(serve), Protocols: &cleartext}).Serve(listener))
	}
	client := &http.Client{Transport: &http.Transport{Protocols: &cleartext}}
	exchange(client, "GET", os.Args[2], nil)
	var body []byte
	method, url := "GET", os.Args[3]
	if os.Args[1] == "put" {
		n, err := strconv.Atoi(os.Args[4])
		check(err)
		method, body = "PUT", make([]byte, n)
	}
	began := time.Now()
	exchange(client, method, url, body)
	fmt.Println(time.Since(began).Seconds())
}
