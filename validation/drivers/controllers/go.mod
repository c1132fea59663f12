module github.com/quic-go/quic-go/h3sim

go 1.26.0

require github.com/quic-go/quic-go v0.65.0
