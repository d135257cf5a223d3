package trial

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sessions outlive the connections that are replaced, and each client has a new one when GoAway returns.
func TestGoAway(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, tr *Trial) {
		one, two, other := tr.Dial(Dialing{}), tr.Dial(Dialing{}), tr.Dial(Dialing{})
		one.List("a")
		one.Open(3)
		one.List("ab")
		two.List("a")
		other.List("b")
		tr.GoAway("a")
		assert.Equal(t, []int{3, 2, 1}, []int{one.Connections(), two.Connections(), other.Connections()})
		assert.Equal(t, []int{3, 0}, Counts(mustCensus(t, tr)))
		two.Open(1)
		onlyOn(t, tr, 1, "a")
	})
}

// A host that its health service takes out of use gets nothing until it is back, however empty it is.
func TestSetServing(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, tr *Trial) {
		c := tr.Dial(Dialing{Fields: []string{`"healthCheckConfig":{"serviceName":""}`}})
		c.List("b")
		c.Open(4)
		c.List("ab")
		tr.SetServing("a", false)
		c.Open(6)
		onlyOn(t, tr, 6, "b")
		assert.Equal(t, At("b", 10), c.loads(), "loads that a policy may choose among")
		tr.SetServing("a", true)
		tr.End("b")
		c.Open(20)
		held := Counts(mustCensus(t, tr))
		assert.Positive(t, held[0])
		assert.Equal(t, 20, held[0]+held[1])
	})
}

func TestStopAndRestart(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, tr *Trial) {
		c := tr.Dial(Dialing{})
		c.List("a")
		c.Open(3)
		c.List("ab")
		tr.Stop("a")
		assert.Equal(t, []int{0, 0}, Counts(mustCensus(t, tr)))
		c.Open(2)
		onlyOn(t, tr, 2, "b")
		tr.Restart("a")
		tr.End("b")
		c.List("a")
		c.Open(2)
		onlyOn(t, tr, 2, "a")
		tr.Fault("%d faults", 0)
		assert.Equal(t, []string{"0 faults"}, tr.outcome.Faults)
		tr.outcome.Faults = nil
	})
}
