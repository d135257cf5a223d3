package settings_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
)

// answerer answers with as many bytes as it is asked for.
type answerer struct {
	grpc_testing.UnimplementedTestServiceServer
	body []byte
}

func (a answerer) UnaryCall(_ context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	return &grpc_testing.SimpleResponse{Payload: &grpc_testing.Payload{Body: a.body[:r.ResponseSize]}}, nil
}

func startAnswerer(b *testing.B, creds credentials.TransportCredentials) resolver.Address {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	s := grpc.NewServer(grpc.Creds(creds))
	grpc_testing.RegisterTestServiceServer(s, answerer{body: make([]byte, 1<<20)})
	go func() { _ = s.Serve(l) }()
	b.Cleanup(s.Stop)
	return resolver.Address{Addr: l.Addr().String()}
}

// BenchmarkUnary is calls with an answer of a size, in turns over a channel with
// the reader off and one with it on. It reports the median time of each, and the
// speed with the reader as a share of that without it.
func BenchmarkUnary(b *testing.B) {
	for security, creds := range map[string][2]credentials.TransportCredentials{
		"insecure": {insecure.NewCredentials(), insecure.NewCredentials()},
		"tls":      benchTLS(b),
	} {
		for _, size := range []struct {
			name  string
			bytes int32
		}{{"0", 0}, {"1MB", 1 << 20}} {
			b.Run("security="+security+"/size="+size.name, func(b *testing.B) {
				addr := startAnswerer(b, creds[1])
				var clients [2]grpc_testing.TestServiceClient
				for i, e := range []*ears{nil, {}} {
					c := dial(b, e, addr, grpc.WithTransportCredentials(creds[0]))
					waitState(b, c, connectivity.Ready) // its policy has looked for its ears
					clients[i] = c.Client()
				}
				var times [2][]float64
				req := &grpc_testing.SimpleRequest{ResponseSize: size.bytes}
				for turn := 0; b.Loop(); turn++ {
					for _, i := range [][2]int{{0, 1}, {1, 0}}[turn%2] {
						start := time.Now()
						_, err := clients[i].UnaryCall(b.Context(), req)
						times[i] = append(times[i], float64(time.Since(start)))
						require.NoError(b, err)
					}
				}
				off, on := median(times[0]), median(times[1])
				b.ReportMetric(off, "off-ns/call")
				b.ReportMetric(on, "on-ns/call")
				b.ReportMetric(off/on, "speed")
			})
		}
	}
}

func median(times []float64) float64 {
	slices.Sort(times)
	return times[len(times)/2]
}
