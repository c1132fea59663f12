// Added to the package internal/congestion of quic-go: its constructor with an initial window.
package congestion

import (
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
)

func H3sim(
	clock Clock, rtt *utils.RTTStats, reno bool, size, window protocol.ByteCount,
) SendAlgorithmWithDebugInfos {
	most := protocol.MaxCongestionWindowPackets * size
	return newCubicSender(clock, rtt, &utils.ConnectionStats{}, reno, size, window, most, nil)
}
