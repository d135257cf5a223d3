// Command benchtable reads the output of leastconnbalancer's benchmarks on standard input and prints, as a Markdown table,
// what each limit allows and what was measured. It takes the median of all runs of a benchmark, so it is best fed with
// several rounds of the whole, which spread the noise of the machine over all sides of a ratio:
//
//	for i in 1 2 3 4 5 6 7; do
//		go test ./leastconnbalancer -run '^$' -bench 'Pick|BringUp|Update' -benchtime 200ms -timeout 0
//	done > bench.txt
//	go run ./leastconnbalancer/internal/benchtable < bench.txt
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	res, err := parse(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
	printTable(os.Stdout, res)
}

// printTable prints a row for each limit, with the worst that any benchmark it holds for has measured.
func printTable(w io.Writer, res results) {
	fmt.Fprintln(w, "| what | limit | measured | | worst at |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, l := range limits {
		worst, at, found := l.worst(res)
		measured, verdict := l.amount(worst), "ok"
		switch {
		case !found:
			measured, verdict = "", "no data"
		case worst > l.most:
			verdict = "**over**"
		}
		fmt.Fprintf(w, "| %s | ≤ %s | %s | %s | %s |\n", l.what, l.amount(l.most), measured, verdict, at)
	}
}
