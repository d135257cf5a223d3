package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

const maxPort = 65535

// server is one that the cases run against.
type server struct {
	Name  string   // host and port, as they were given
	Addrs []string // with IP addresses: more than one if the host has
}

func (s server) has(addr string) bool { return slices.Contains(s.Addrs, addr) }

// ready reports whether a ledger has the server as a ready node.
func (s server) ready(ledgers []leastconnbalancer.Snapshot) bool {
	member := func(m leastconnbalancer.MemberSnapshot) bool { return m.Ready }
	for _, l := range ledgers {
		for _, n := range l.Endpoints {
			if slices.ContainsFunc(n.Addresses, s.has) && slices.ContainsFunc(n.Members, member) {
				return true
			}
		}
	}
	return false
}

// endpoints lists servers as a resolver does. Certificates are checked against the names that were given.
func endpoints(servers []server) []resolver.Endpoint {
	all := make([]resolver.Endpoint, len(servers))
	for i, s := range servers {
		for _, a := range s.Addrs {
			all[i].Addresses = append(all[i].Addresses, resolver.Address{Addr: a, ServerName: s.Name})
		}
	}
	return all
}

// lookUp returns the servers of --server_host and --server_port, two lists: a host without a port has all of the ports.
func lookUp(ctx context.Context, hosts, ports string) ([]server, error) {
	var all []server
	for entry := range strings.SplitSeq(hosts, ",") {
		host, port, err := net.SplitHostPort(entry)
		list := []string{port}
		if err != nil {
			host, list = strings.Trim(entry, "[]"), strings.Split(ports, ",")
		}
		if host == "" {
			return nil, fmt.Errorf("--server_host is %q: want HOST or HOST:PORT, several of them separated by commas", hosts)
		}
		for _, port := range list {
			if n, err := strconv.Atoi(port); err != nil || n < 1 || n > maxPort {
				return nil, fmt.Errorf("--server_host is %q and --server_port is %q: port %q, want a number from 1 to %d, several of them separated by commas",
					hosts, ports, port, maxPort)
			}
			s, err := serverAt(ctx, host, port)
			if err != nil {
				return nil, fmt.Errorf("--server_host is %q, want hosts that have an address: %w", hosts, err)
			}
			if slices.ContainsFunc(all, func(o server) bool { return slices.ContainsFunc(o.Addrs, s.has) }) {
				return nil, fmt.Errorf("--server_host is %q and --server_port is %q: %s is there twice, want each server once", hosts, ports, s.Name)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

func serverAt(ctx context.Context, host, port string) (server, error) {
	s := server{Name: net.JoinHostPort(host, port)}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, ip := range ips {
		s.Addrs = append(s.Addrs, net.JoinHostPort(ip.Unmap().String(), port))
	}
	return s, err
}
