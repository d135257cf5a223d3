package settings_test

import (
	"crypto/tls"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// heapOfIdle returns the heap, in bytes, per idle connection of a channel, the
// channel and the server's half included.
func heapOfIdle(t testing.TB, hear bool, client, server credentials.TransportCredentials) float64 {
	const n = 50
	goroutines := runtime.NumGoroutine()
	node, addr := startNode(t, grpc.Creds(server))
	channels := make([]*leastconntest.Channel, n)
	before := heap()
	for i := range channels {
		var e *ears
		if hear {
			e = &ears{}
		}
		channels[i] = dial(t, e, addr, grpc.WithTransportCredentials(client))
		waitState(t, channels[i], connectivity.Ready)
	}
	used := heap() - before
	for _, c := range channels {
		_ = c.Close()
	}
	node.Close()
	require.NoError(t, leastconntest.WaitFor(t.Context(), "the end of all connections", func() bool {
		return runtime.NumGoroutine() <= goroutines
	}))
	return used / n
}

// heap returns what is reachable, pools apart.
func heap() float64 {
	for range 3 { // a pool lives through one collection
		runtime.GC()
	}
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

// An idle connection does not hold the read buffer of 32 kB that gRPC would give
// it if it could not read when there is something to read.
func TestIdleConnectionHoldsNoBuffer(t *testing.T) {
	var plain, hearing float64
	// What other tests leave behind is gone by the second time. On a busy machine some
	// connections still read when the heap is looked at; each time so many do not.
	for try := 0; try < 2 || hearing >= plain+8000 && try < 8; try++ {
		plain = heapOfIdle(t, false, insecure.NewCredentials(), insecure.NewCredentials())
		hearing = heapOfIdle(t, true, insecure.NewCredentials(), insecure.NewCredentials())
	}
	require.Less(t, hearing, plain+8000)
}

// BenchmarkIdleConnection reports the heap of an idle connection.
func BenchmarkIdleConnection(b *testing.B) {
	all := map[string][2]credentials.TransportCredentials{
		"insecure": {insecure.NewCredentials(), insecure.NewCredentials()},
		"tls":      benchTLS(b),
	}
	for _, security := range []string{"insecure", "tls"} {
		b.Run("security="+security, func(b *testing.B) {
			var plain, hearing float64
			for range b.N {
				plain += heapOfIdle(b, false, all[security][0], all[security][1])
				hearing += heapOfIdle(b, true, all[security][0], all[security][1])
			}
			b.ReportMetric(plain/float64(b.N), "off-B/conn")
			b.ReportMetric(hearing/float64(b.N), "on-B/conn")
			b.ReportMetric((hearing-plain)/float64(b.N), "more-B/conn")
		})
	}
}

// benchTLS returns the credentials of a client and a server.
func benchTLS(t testing.TB) [2]credentials.TransportCredentials {
	cert := newIssuer(t).issue("node.test")
	return [2]credentials.TransportCredentials{
		credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
		credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}}),
	}
}
