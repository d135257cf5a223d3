package main

import (
	"time"

	"google.golang.org/grpc"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer" // registers least_conn
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// order is what a child process is told.
type order struct {
	Case           string
	TimeoutSeconds int // of each: getting ready, the case unless it soaks, counts coming back to 0
	Servers        []server
	ServiceConfig  string
	TLS            *security
	Soak           soak
}

// limit is how long a case may take. A soak keeps its time itself.
func (o *order) limit(c testCase) time.Duration {
	if c.soaks {
		return o.Soak.limit() + o.timeout()
	}
	return o.timeout()
}

func (o *order) timeout() time.Duration { return time.Duration(o.TimeoutSeconds) * time.Second }

// dial makes a channel over all servers.
func (o *order) dial(opts ...grpc.DialOption) (*leastconntest.Channel, error) {
	secured, err := o.TLS.dialOptions()
	if err != nil {
		return nil, err
	}
	return leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: o.ServiceConfig,
		Target:        o.Servers[0].Name,
		Endpoints:     endpoints(o.Servers),
		DialOptions:   append(opts, secured...),
	})
}
