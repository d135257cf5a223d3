package statetest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// patience is how long what a test has ended may take to go away.
const patience = time.Minute

// Main runs a package's tests for its TestMain and then fails the binary if a
// goroutine of gRPC or of this module is left, a lease is out, or a ledger
// violates an invariant.
func Main(m *testing.M) {
	code := m.Run()
	if err := settled(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "FAIL: after the last test:", err)
		code = 1
	}
	os.Exit(code)
}

// settled waits until nothing is left of the tests, or says what is.
func settled() error {
	deadline := time.Now().Add(patience)
	for {
		// A look at the ledgers while a collection marks keeps them for one more, so this
		// collection ends before the look.
		runtime.GC()
		err := errors.Join(leftGoroutines(), leftLeases())
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func leftLeases() error {
	var errs []error
	for _, l := range state.Ledgers() {
		errs = append(errs, l.Check())
		if n := l.Snapshot().InFlight; n != 0 {
			errs = append(errs, fmt.Errorf("%d leases of ledger %q are out", n, l.Key()))
		}
	}
	return errors.Join(errs...)
}

func leftGoroutines() error {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var errs []error
	for _, g := range strings.Split(string(buf), "\n\n")[1:] {
		if strings.Contains(g, "google.golang.org/grpc") || strings.Contains(g, "grpc-leastconn") {
			errs = append(errs, errors.New("a goroutine is left: "+g))
		}
	}
	return errors.Join(errs...)
}
