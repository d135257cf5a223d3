package resolver_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// server is what an inventory knows of a server.
type server struct {
	id, addr         string
	weight, priority uint32
}

// inventory stands for a discovery of one's own: it knows the servers of a
// service now and tells of changes.
type inventory struct {
	mu      sync.Mutex
	servers []server
	changed chan struct{} // closed with the next change
}

func newInventory(servers ...server) *inventory {
	return &inventory{servers: servers, changed: make(chan struct{})}
}

func (i *inventory) set(servers ...server) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.servers = servers
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *inventory) get() (servers []server, changed <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.servers, i.changed
}

// builder makes the resolvers of targets such as inventory:///orders.
type builder struct{ inventory *inventory }

func (builder) Scheme() string { return "inventory" }

func (b builder) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	w := &watcher{closed: make(chan struct{})}
	w.running.Go(func() { w.watch(b.inventory, target.Endpoint(), cc) })
	return w, nil
}

// watcher tells a channel what the inventory knows, until Close.
type watcher struct {
	closed  chan struct{}
	running sync.WaitGroup
}

func (w *watcher) watch(i *inventory, service string, cc resolver.ClientConn) {
	for {
		servers, changed := i.get()
		if err := cc.UpdateState(stateOf(service, servers)); err != nil {
			log.Print("the list is refused: ", err)
		}
		select {
		case <-changed:
		case <-w.closed:
			return
		}
	}
}

// ResolveNow does nothing: the inventory tells of each change anyway.
func (w *watcher) ResolveNow(resolver.ResolveNowOptions) {}

func (w *watcher) Close() {
	close(w.closed)
	w.running.Wait()
}

// stateOf says what there is to say of the servers.
func stateOf(service string, servers []server) resolver.State {
	s := resolver.State{Endpoints: []resolver.Endpoint{}} // an empty list is one, too
	for _, v := range servers {
		ep := resolver.Endpoint{Addresses: []resolver.Address{{Addr: v.addr}}}
		ep = lcresolver.SetID(ep, v.id)
		ep = lcresolver.SetWeight(ep, v.weight)
		ep = lcresolver.SetPriority(ep, v.priority)
		s.Endpoints = append(s.Endpoints, ep)
	}
	return lcresolver.SetResourceKey(s, service)
}

// A program that has its own discovery brings a resolver of its own. It says how
// much each server can carry, which ones are spare, and which server it is,
// whatever its address.
func Example_discovery() {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "large", "small", "spare", "large, moved")
	if err != nil {
		log.Fatal(err)
	}
	defer leastconntest.CloseNodes(nodes...)
	large := server{id: "server-1", addr: nodes[0].Addr(), weight: 2}
	small := server{id: "server-2", addr: nodes[1].Addr(), weight: 1}
	spare := server{id: "server-3", addr: nodes[2].Addr(), weight: 1, priority: 1}
	orders := newInventory(large, small, spare)

	conn, err := grpc.NewClient("inventory:///orders",
		grpc.WithResolvers(builder{orders}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	conn.Connect()

	waitForWeights(large, small, spare)
	fmt.Println("3 streams:", open(conn, 3))

	// Weight 0 is a drain: streams live on, new ones go elsewhere.
	large.weight = 0
	orders.set(large, small, spare)
	waitForWeights(large, small, spare)
	fmt.Println("2 more while it drains:", open(conn, 2))

	// It returns with another address, and is known by its id.
	large.weight, large.addr = 2, nodes[3].Addr()
	orders.set(large, small, spare)
	connected := func() bool { return nodes[3].OpenConns() > 0 }
	if err := leastconntest.WaitFor(context.Background(), "a connection to the new address", connected); err != nil {
		log.Fatal(err)
	}
	waitForWeights(large, small, spare)
	fmt.Println("4 more after it has moved:", open(conn, 4))
	for _, e := range endpointsOf("orders") {
		fmt.Println(e.ID, "has", e.InFlight)
	}
	// Output:
	// 3 streams: map[large:2 small:1]
	// 2 more while it drains: map[small:2]
	// 4 more after it has moved: map[large, moved:4]
	// server-1 has 6
	// server-2 has 3
	// server-3 has 0
}

// open opens n streams, one after another, and returns how many went where.
func open(conn *grpc.ClientConn, n int) map[string]int {
	streams := make([]*leastconntest.Stream, n)
	for i := range streams {
		var err error
		if streams[i], err = leastconntest.Open(context.Background(), conn); err != nil {
			log.Fatal(err)
		}
	}
	return leastconntest.Counts(streams)
}

// endpointsOf returns what the process knows of a service, by id here.
func endpointsOf(resourceKey string) []state.EndpointSnapshot {
	for _, s := range state.Snapshots() {
		if s.ResourceKey == resourceKey {
			slices.SortFunc(s.Endpoints, func(a, b state.EndpointSnapshot) int { return strings.Compare(a.ID, b.ID) })
			return s.Endpoints
		}
	}
	return nil
}

// waitForWeights waits until all servers are connected with their weights.
func waitForWeights(servers ...server) {
	err := leastconntest.WaitFor(context.Background(), "all servers", func() bool {
		endpoints := endpointsOf("orders")
		return len(endpoints) == len(servers) && !slices.ContainsFunc(endpoints, func(e state.EndpointSnapshot) bool {
			i := slices.IndexFunc(servers, func(s server) bool { return s.id == e.ID })
			m := e.Members
			return len(m) != 1 || !m[0].Ready || m[0].Weight != servers[i].weight || !slices.Contains(e.Addresses, servers[i].addr)
		})
	})
	if err != nil {
		log.Fatal(err)
	}
}
