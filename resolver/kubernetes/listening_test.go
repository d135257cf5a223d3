package kubernetes

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// builder asks the API server, as soon again as a test can wait for.
func (a *apiServer) builder() *builder {
	client, err := connect(&rest.Config{Host: "http://" + a.addr})
	require.NoError(a, err)
	return &builder{
		opts:    Options{Namespace: "shop"},
		connect: func() (connection, error) { return client, nil },
		backoff: &wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1},
	}
}

// listening is a channel that knows what it was told last.
type listening struct {
	resolver.ClientConn // nil: what is not overridden is not called
	*testing.T

	mu     sync.Mutex
	list   string
	lists  int
	errors []string
}

func (c *listening) UpdateState(s resolver.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, ep := range s.Endpoints {
		all = append(all, lcresolver.ID(ep))
	}
	c.list = strings.Join(all, " ")
	c.lists++
	return nil
}

func (c *listening) ReportError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = append(c.errors, err.Error())
}

// listen resolves a target until the test ends.
func (a *apiServer) listen(target string) *listening {
	a.Helper()
	c := &listening{T: a.T}
	r, err := a.builder().Build(targetOf(a, target), c, resolver.BuildOptions{})
	require.NoError(a, err)
	a.Cleanup(r.Close)
	r.ResolveNow(resolver.ResolveNowOptions{})
	return c
}

// waitFor waits for a condition, so long that only a fault lets it fail.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.NoError(t, leastconntest.WaitFor(t.Context(), what, condition))
}

// has waits until the channel was told these endpoints.
func (c *listening) has(uids string) {
	c.Helper()
	waitFor(c.T, fmt.Sprintf("list %q", uids), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.list == uids
	})
}

// failed waits until the last error has these words.
func (c *listening) failed(words string) {
	c.Helper()
	waitFor(c.T, "error "+words, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.errors) > 0 && strings.Contains(c.errors[len(c.errors)-1], words)
	})
}

// silent checks that the channel was told no error.
func (c *listening) silent() {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(c, c.errors)
}
