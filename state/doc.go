// Package state counts the RPCs in flight per endpoint and chooses the
// endpoint with the fewest, for all channels of a process.
//
// It knows nothing of gRPC: package picker takes leases from it,
// leastconnbalancer tells it which endpoints are listed and which are ready.
//
//   - A [Ledger] holds the in-flight counts of one resource key, by node. The
//     process-wide registry behind [Open] holds it weakly: it lives while a
//     roster, a view or a live lease reaches it, so there is nothing to size
//     and nothing to evict.
//   - A node is one endpoint's entry in a ledger: its identity and its count.
//   - A [Roster] is one balancer's list of endpoints. It finds the node of each.
//   - A [View] holds a roster's ready members of one priority level in the
//     order in which they are chosen. Weight and value belong to the member,
//     since two channels may disagree on them; the count belongs to the node.
//   - A [Lease] is one counted choice. Its first Release gives it back.
//
// # Invariants
//
// [Ledger.Check] asserts them; the tests run it after every step.
//
//  1. The in-flight counts of a ledger add up to its live leases. No count is
//     ever negative.
//  2. A count changes only in Acquire and Release.
//  3. Acquire returns a member of its view whose score (in_flight + 1) / weight
//     no eligible member of the view beats, under one lock with the count. Among
//     equals the one that waits longest is chosen, so serial calls over idle
//     equal nodes visit each once per round; where a newcomer stands among its
//     equals is random, so that a fleet of clients does not move in step.
//  4. A node without members and leases is not in the ledger.
//  5. Acquire, Release, Set and Remove cost O(log n) in the members of a view,
//     times the views that share the node; with equal weights Acquire and
//     Release cost O(1). (A table that grows is copied, as Go's maps are.)
//
// # Concurrency
//
// Everything here is safe for concurrent use. One mutex guards a ledger with
// all its rosters, views and leases; nothing is called out under it. The
// registry has a mutex of its own; the two are never held together.
package state
