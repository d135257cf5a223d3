package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// siteSize is how many servers the scenarios need.
const siteSize = 3

// site is the servers that all trials share. No two trials run at once.
type site struct {
	hosts  []trial.Host
	maxAge time.Duration // of the first host's connections; 0 if only this process can age them
}

// openSite finds the servers at the addresses of target, or starts its own if target is empty.
func openSite(ctx context.Context, target string, maxAge time.Duration) (*site, error) {
	if target == "" {
		return ownSite()
	}
	return remoteSite(ctx, strings.Split(target, ","), maxAge)
}

func ownSite() (*site, error) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
	if err != nil {
		return nil, err
	}
	return &site{hosts: trial.Hosts(nodes...)}, nil
}

func remoteSite(ctx context.Context, addrs []string, maxAge time.Duration) (*site, error) {
	if len(addrs) < siteSize {
		return nil, fmt.Errorf("-target names %d servers, want at least %d", len(addrs), siteSize)
	}
	s := &site{maxAge: maxAge}
	known := make(map[string]string) // address by name
	for _, addr := range addrs[:siteSize] {
		addr = strings.TrimSpace(addr)
		h, err := ask(ctx, addr)
		if err != nil {
			return nil, fmt.Errorf("-target: server %s: %w", addr, err)
		}
		if other, ok := known[h.Name]; ok {
			return nil, fmt.Errorf("-target: servers %s and %s are both named %q: start each with a -name of its own", other, addr, h.Name)
		}
		known[h.Name] = addr
		s.hosts = append(s.hosts, h)
	}
	return s, nil
}

// ask learns the name of the server at addr.
func ask(ctx context.Context, addr string) (trial.Host, error) {
	ctx, cancel := context.WithTimeout(ctx, leastconntest.DefaultTimeout)
	defer cancel()
	h := trial.Host{Endpoint: resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}}}
	channel, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: `{"loadBalancingConfig":[{"round_robin":{}}]}`,
		Endpoints:     []resolver.Endpoint{h.Endpoint},
	})
	if err != nil {
		return trial.Host{}, err
	}
	defer channel.Close()
	h.Name, err = channel.Unary(ctx)
	if err == nil && h.Name == "" {
		err = errors.New("it does not say its name: it is no examples/server")
	}
	return h, err
}

// ages tells whether the connections of the first host can be made to age.
func (s *site) ages() bool { return s.hosts[0].Node != nil || s.maxAge > 0 }

func (s *site) close() {
	for _, h := range s.hosts {
		if h.Node != nil {
			h.Node.Close()
		}
	}
}
