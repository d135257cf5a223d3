// Package xdscluster lets least_conn know the name of the xDS cluster that its endpoints are of. Import it
// for that, beside the policy:
//
//	import (
//		_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
//		_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/xdscluster"
//	)
//
// Then "{cluster}" in the resourceKey of the configuration stands for the name, and the policy's metrics
// have it in their optional label "grpc.lb.backend_service". The name is grpc-go's for its own metrics. It
// promises nobody else to find it: a release that keeps it elsewhere leaves the policy without a name, and
// with what it does where there is none.
package xdscluster

import (
	"regexp"
	"strconv"

	"google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/cluster"
)

func init() { cluster.Register(name) }

// quoted is what a printed attribute has for a string.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// name returns the cluster's name. gRPC lets others set it only. So what the attributes print is
// tried: setting the name that they have already changes nothing, setting any other one does.
func name(s resolver.State) string {
	for _, q := range quoted.FindAllString(s.Attributes.String(), -1) {
		candidate, err := strconv.Unquote(q)
		if err == nil && candidate != "" && unchanged(s, weightedroundrobin.SetBackendService(s, candidate)) {
			return candidate
		}
	}
	return ""
}

// unchanged reports whether two states' attributes are equal. Values that Go cannot compare count
// as different.
func unchanged(a, b resolver.State) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return b.Attributes.Equal(a.Attributes)
}
