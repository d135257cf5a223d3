package leastconnbalancer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Scaling out: the next streams go to the node that has just joined.
func TestD01ScaleOutTwoToThree(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns[:2]...)
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)

	c.update(ns...)
	_, by = c.hold(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	c.counts(ns, 2, 2, 2)
	_, by = c.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, by)
	l.served(ns, 3, 3, 3)
}
