package state_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// script returns a random script of at least that many steps.
func script(seed uint64, steps int) []byte {
	r := rand.New(rand.NewPCG(seed, seed))
	ops := make([]byte, steps*8)
	for i := range ops {
		ops[i] = byte(r.Uint32())
	}
	return ops
}

// runRandom runs some random scripts of at least that many steps.
func runRandom(t *testing.T, steps int, run func(ops []byte) error) {
	t.Helper()
	for range 4 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { require.NoError(t, run(script(seed, steps))) })
		})
	}
}

func TestRandomScriptsAgreeWithTheModel(t *testing.T) { runRandom(t, 4000, statetest.Run) }

func FuzzScript(f *testing.F) {
	f.Add([]byte{9, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 8, 0, 0})
	f.Add(script(1, 50))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 4096 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			if err := statetest.Run(ops); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestRandomSessionsMoveForAReason(t *testing.T) { runRandom(t, 500, statetest.RunSessions) }

func FuzzSessions(f *testing.F) {
	f.Add(script(1, 50))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 4096 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			if err := statetest.RunSessions(ops); err != nil {
				t.Fatal(err)
			}
		})
	})
}
