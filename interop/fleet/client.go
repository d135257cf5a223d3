package main

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// order is a line that a client process reads. Those after the first one have another list only. When there are no more,
// or the parent has died, the client ends.
type order struct {
	ServiceConfig string        `json:"serviceConfig,omitempty"`
	Streams       int           `json:"streams,omitempty"`
	Life          time.Duration `json:"life,omitempty"`
	Seed          [2]uint64     `json:"seed"`
	Addrs         []string      `json:"addrs"`
}

func (o order) endpoints() []resolver.Endpoint {
	all := make([]resolver.Endpoint, len(o.Addrs))
	for i, a := range o.Addrs {
		all[i].Addresses = []resolver.Address{{Addr: a}}
	}
	return all
}

// news is a line that a client process writes: a failure, or at the end how many streams it has opened.
type news struct {
	Failure *failure `json:"failure,omitempty"`
	Opened  int      `json:"opened,omitempty"`
}

// failure is a stream that has failed.
type failure struct {
	Addr  string `json:"addr"` // of its server, "" if it had none
	Error string `json:"error"`
}

// client is what a client process is.
type client struct {
	order
	channel *leastconntest.Channel

	mu     sync.Mutex
	say    *json.Encoder
	opened int
}

// runClient is the program of a client process.
func runClient(in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	c := client{say: json.NewEncoder(out)}
	if err := orders.Decode(&c.order); err != nil {
		return err
	}
	var err error
	c.channel, err = leastconntest.Dial(leastconntest.ChannelConfig{ServiceConfig: c.ServiceConfig, Target: "fleet", Endpoints: c.endpoints()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var streams sync.WaitGroup
	for i := range c.Streams {
		rng := rand.New(rand.NewPCG(c.Seed[0], c.Seed[1]*uint64(c.Streams)+uint64(i)))
		streams.Go(func() { c.hold(ctx, rng) })
	}
	for {
		var o order
		if orders.Decode(&o) != nil {
			break
		}
		_ = c.channel.Update(o.endpoints()...) // a list that is not taken shows in the servers' loads
	}
	cancel()
	streams.Wait()
	if err := c.channel.Close(); err != nil {
		return err
	}
	return c.say.Encode(news{Opened: c.opened})
}

// afterFailure is how long a stream that failed is not opened again.
const afterFailure = 100 * time.Millisecond

// hold holds a stream, and opens the next one when it ends.
func (c *client) hold(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		var at peer.Peer
		err := c.live(ctx, time.Duration(rng.ExpFloat64()*float64(c.Life)), &at)
		if err == nil || ctx.Err() != nil {
			continue
		}
		f := failure{Error: err.Error()}
		if at.Addr != nil {
			f.Addr = at.Addr.String()
		}
		c.mu.Lock()
		_ = c.say.Encode(news{Failure: &f}) // it fails when the parent is gone, and then all ends
		c.mu.Unlock()
		select {
		case <-time.After(afterFailure):
		case <-ctx.Done():
		}
	}
}

// live opens a stream and ends it when it has lived.
func (c *client) live(ctx context.Context, life time.Duration, at *peer.Peer) error {
	s, err := c.channel.Open(ctx, grpc.Peer(at))
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.opened++
	c.mu.Unlock()
	end := time.AfterFunc(life, func() { _ = s.CloseSend() })
	defer end.Stop()
	return s.Wait()
}
