package main

import (
	"fmt"
	"strings"
)

const intro = `Scenarios opens sessions (bidirectional streams that are held open) while servers and channels come, go, age, fail and
return, and prints one table that shows what each load balancing policy made of it. Every policy plays every scenario on
fresh servers of this process, on TCP loopback:

`

const outro = `
The policies are round_robin, grpc-go's least_request_experimental with 2 choices (its default) and with 10, and
least_conn. A policy is right in a scenario if every session went to a server that held the fewest when it was opened, as
the servers count, and the servers then hold what exact least-connections gives; of sessions that open at one moment, if
they could have been placed so in some order. What least_conn itself counts must be what the servers hold, too.
round_robin begins at a random server and least_request picks at random, so what they give differs from run to run.

Exit status: 0 if least_conn was right in every scenario, or was not played; 1 if it was off in one; 2 if something could
not be run.

Flags:
`

// usage lists the scenarios as they are.
func usage() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, r := range table() {
		fmt.Fprintf(&b, "  %-22s%s\n", r.name, r.change)
	}
	b.WriteString(outro)
	return b.String()
}
