package main

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReport(t *testing.T) {
	r := newReport()
	stop, reset := fault{name: "stop", end: func(target, uint32) error { return nil }}, fault{name: "reset"}
	r.fault(stop, false, "1")
	r.fault(reset, false, "2")
	r.fault(stop, true, "3")
	r.survived(false)
	r.fault(stop, false, "4")
	r.survived(true)
	assert.Equal(t, faultCount{injected: 2, open: 1, survived: 1}, *r.faults["stop"], "one is not over")
	assert.Equal(t, faultCount{injected: 1, survived: 1}, *r.faults["reset"])
	assert.Equal(t, []string{"1", "2", "3", "4"}, r.latest())
	r.fault(reset, false, "5")
	assert.Equal(t, 1, r.faults["reset"].survived, "no quiet point came after it")

	r.ended("unary", nil)
	r.ended("unary", status.Error(codes.Canceled, "by the client"))
	r.ended("unary", nil)
	r.ended("bidirectional", io.EOF)
	r.leave()
	r.footprint(footprint{1, 2 << 20, 3}, footprint{4, 5 << 20, 6})
	text := r.render()
	for _, line := range []string{
		"reset  2         1\n",
		"stop   2         1\n",
		"RPC            all  Canceled  OK\n",
		"bidirectional  1    0         1\n",
		"unary          3    1         2\n",
		"2 quiet points, 1 of them full; 0 comparisons in between; 1 RPCs abandoned; sessions were told 0 times to move\n",
		"4 goroutines, at first 1; 5.0 MB of heap, at first 2.0; 6 nodes in ledgers, at first 3\n",
	} {
		assert.Contains(t, text, line)
	}
	r.outlived()
	assert.Equal(t, 2, r.faults["stop"].survived)
}

func TestUnexplainedEnds(t *testing.T) {
	r := newReport()
	for _, code := range codesOfFaults {
		r.ended("unary", status.Error(code, ""))
	}
	r.ended("unary", fmt.Errorf("max retries exhausted: failed after 4 attempts: %w", io.EOF))
	require.NoError(t, r.unexplained())
	r.ended("unary", errors.New("out of the blue"))
	r.ended("unary", status.Error(codes.DataLoss, ""))
	assert.EqualError(t, r.unexplained(), "an RPC, unary, ended as nothing that was injected explains: out of the blue")
	q := &quiesce{report: r, patience: patience}
	assert.ErrorAs(t, q.check(t.Context(), false), new(*violation))
}
