package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sessions outlive the connections that are replaced, and each client has a new one when GoAway returns.
func TestGoAway(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, r *Run) {
		one, two, other := r.Dial(ClientConfig{}), r.Dial(ClientConfig{}), r.Dial(ClientConfig{})
		one.List("a")
		one.Open(3)
		one.List("ab")
		two.List("a")
		other.List("b")
		r.GoAway("a")
		assert.Equal(t, []int{3, 2, 1}, []int{one.Connections(), two.Connections(), other.Connections()})
		assert.Equal(t, []int{3, 0}, Counts(mustCensus(t, r)))
		two.Open(1)
		onlyOn(t, r, 1, "a")
	})
}

// A host that its health service takes out of use gets nothing until it is back, however empty it is.
func TestSetServing(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, r *Run) {
		c := r.Dial(ClientConfig{Fields: []string{`"healthCheckConfig":{"serviceName":""}`}})
		c.List("b")
		c.Open(4)
		c.List("ab")
		r.SetServing("a", false)
		c.Open(6)
		onlyOn(t, r, 6, "b")
		assert.Equal(t, Loads("b", 10), c.loads(), "loads that a policy may choose among")
		r.SetServing("a", true)
		r.End("b")
		c.Open(20)
		held := Counts(mustCensus(t, r))
		assert.Positive(t, held[0])
		assert.Equal(t, 20, held[0]+held[1])
	})
}

func TestStopAndRestart(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, r *Run) {
		c := r.Dial(ClientConfig{})
		c.List("a")
		c.Open(3)
		c.List("ab")
		r.Stop("a")
		assert.Equal(t, []int{0, 0}, Counts(mustCensus(t, r)))
		c.Open(2)
		onlyOn(t, r, 2, "b")
		r.Restart("a")
		r.End("b")
		c.List("a")
		c.Open(2)
		onlyOn(t, r, 2, "a")
		r.Fault("%d faults", 0)
		assert.Equal(t, []string{"0 faults"}, r.outcome.Faults)
		r.outcome.Faults = nil
	})
}
