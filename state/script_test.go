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

func TestRandomScriptsAgreeWithTheModel(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { require.NoError(t, statetest.Run(script(seed, 4000))) })
		})
	}
}

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
