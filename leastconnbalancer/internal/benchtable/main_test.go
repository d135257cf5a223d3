package main

import (
	"os"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	f, err := os.Open("testdata/bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	res, err := parse(f)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printTable(&out, res)

	for _, row := range []string{
		// The median of three runs over the other side's only one; that of n=10000 took no time and gives no ratio.
		"| Pick + Done over round_robin, n ≤ 1000 | ≤ 11 × | 6 × | ok | n=10 inflight=n2 |",
		"| Pick + Done over round_robin, n=10000 | ≤ 13 × |  | no data |  |",
		"| n=10000 over n=10 | ≤ 1.6 × | 1.5 × | ok | inflight=n2 procs=1 gogc=100 |",
		"| bytes per pick | ≤ 48 B | 33 B | ok | weights=equal n=10 inflight=n2 procs=1 views=1 gogc=100 |",
		// The middle of two runs, and worse than n=10000; n=100 is no part of it.
		"| unchanged update over round_robin, n ≥ 1000 | ≤ 0.1 × | 0.2 × | **over** | n=1000 |",
		"| bring-up over round_robin, n=1000 | ≤ 0.06 × |  | no data |  |",
	} {
		if !strings.Contains(out.String(), row+"\n") {
			t.Errorf("the table lacks the row\n%s\nin\n%s", row, out.String())
		}
	}
}

func TestTableOfNothing(t *testing.T) {
	var out strings.Builder
	printTable(&out, results{})
	if rows := strings.Count(out.String(), "| no data |"); rows != len(limits) {
		t.Errorf("%d rows without data, want all %d:\n%s", rows, len(limits), out.String())
	}
}
