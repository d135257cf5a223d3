package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// waitReady waits until the policy can use all servers, at most for patience.
func waitReady(ctx context.Context, ch *leastconntest.Channel, servers []server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ch.Connect()
	var missing []string
	foreign := false
	err := leastconntest.WaitFor(ctx, "all servers", func() bool {
		settled := ch.Conn().GetState() // before the ledgers, which come first
		ledgers := state.Snapshots()
		missing = missing[:0]
		for _, s := range servers {
			if !s.ready(ledgers) {
				missing = append(missing, s.Name)
			}
		}
		foreign = len(ledgers) == 0 && (settled == connectivity.Ready || settled == connectivity.TransientFailure)
		return len(missing) == 0 || foreign
	})
	switch {
	case foreign:
		return errors.New("the channel has no counts of least_conn: the service config selects another policy")
	case err != nil:
		return fmt.Errorf("not ready: %s: %w%s", strings.Join(missing, ", "), err, complaint(ch))
	}
	return nil
}

// complaint is why an RPC fails now, if it does.
func complaint(ch *leastconntest.Channel) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := ch.Client().EmptyCall(ctx, &grpc_testing.Empty{}); err != nil {
		return fmt.Sprintf("; RPCs fail: %v", err)
	}
	return ""
}
