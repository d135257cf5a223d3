// Package state counts the RPCs in flight per endpoint and chooses the
// endpoint with the fewest, for all channels of a process.
//
// It knows nothing of gRPC: package picker takes leases from it,
// leastconnbalancer tells it which endpoints are listed and which are ready.
//
//   - A [Ledger] holds the in-flight counts of one resource key, by endpoint. The
//     process-wide registry behind [Open] holds it weakly: it lives while a
//     endpoint set, a ready set or a live lease reaches it, so there is nothing to size
//     and nothing to evict.
//   - An endpoint is one endpoint's entry in a ledger: its identity and its count.
//   - An [EndpointSet] is one balancer's list of endpoints. It finds the endpoint of each.
//   - A [ReadySet] holds an endpoint set's ready members of one priority level in the
//     order in which they are chosen. Weight and value belong to the member,
//     since two channels may disagree on them; the count belongs to the endpoint.
//   - A [Lease] is one counted choice. Its first Release or Fail gives it back.
//   - [Guards] are an endpoint set's: failures weigh on an endpoint for a while, and members
//     that are new or back start slowly. A member may have a cap; RPCs that find
//     all at theirs wait in the endpoint set's queue for an [EndpointSet.AcquireOrQueue].
//
// # Invariants
//
// [Ledger.Check] asserts them; the tests run it after every step.
//
//  1. The in-flight counts of a ledger add up to its live leases. No count is
//     ever negative.
//  2. A count changes only where a lease begins or ends.
//  3. Acquire chooses and counts under one lock. Of members of one weight it chooses
//     one with the least load, and of equals the one that waits longest, so serial
//     calls over idle equal endpoints visit each once per round; where a newcomer
//     stands among its equals is random, so that a fleet of clients does not move in
//     step. Among weights counts decide first: right after its choice a member is
//     less than one above its weighted share of the ready set's load. What they leave
//     undecided goes by turns in proportion to weight × share; where a weight's turn
//     is at first is random. An empty member is chosen at least once in
//     ⌈W ÷ (weight × share)⌉ + k − 1 picks, with k weights whose sum over the
//     members is W.
//  4. An endpoint without members and leases is not in the ledger.
//  5. Acquire, Release, Set and Remove cost O(log n) in the members of a ready set,
//     times the ready sets that share the endpoint; with equal weights Acquire and
//     Release cost O(1). (A table that grows is copied, as Go's maps are.)
//  6. No member is chosen at its cap. No RPC waits while there is room where its
//     endpoint set is served; room goes to those that wait for it in order of arrival,
//     over all endpoint sets of a ledger.
//  7. An endpoint's load is its count and its penalty, which is no part of the count.
//
// # Concurrency
//
// Everything here is safe for concurrent use. One mutex guards a ledger with
// all its endpoint sets, ready sets and leases; nothing is called out under it. The
// registry has a mutex of its own; the two are never held together.
package state
