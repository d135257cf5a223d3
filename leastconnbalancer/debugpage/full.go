package debugpage

import (
	"fmt"

	"github.com/leastconn/grpc-leastconn/state"
)

// full is an endpoint that its cap keeps from more, in all channels.
const full = "full"

// fullness says why the endpoint has no room, in how many channels if not in all; "" when it
// has.
func fullness(ep state.EndpointSnapshot) string {
	var chosen, atCap, atLimit int
	limit := int64(0)
	for _, m := range ep.Members {
		switch {
		case !m.Ready || m.Draining:
			continue
		case m.Connection.Full:
			atLimit++
			limit = m.Connection.Limit
		case m.Full:
			atCap++
		}
		chosen++
	}
	why, n := "", max(atCap, atLimit)
	switch {
	case n == 0:
		return ""
	case atLimit > 0:
		why, n = fmt.Sprintf("%s: server's limit %d", full, limit), atLimit
	default:
		why = full
	}
	if n < chosen {
		why += fmt.Sprintf(" (%d of %d channels)", n, chosen)
	}
	return why
}
