// Package state counts the RPCs in flight per endpoint and chooses the endpoint
// with the fewest, for all channels of a process.
//
// It serves the least_conn policy and promises no compatibility to anybody else.
// Users want leastconnbalancer.Snapshots and the types that it returns.
//
// It knows nothing of gRPC: package picker takes leases from it, leastconnbalancer
// tells it which endpoints are listed and which are ready.
//
//   - A [Ledger] holds the in-flight counts of one resource key, by endpoint. The
//     process-wide registry behind [Open] holds it weakly: it lives while an
//     endpoint set, a ready set or a live lease reaches it, so there is nothing to
//     size and nothing to evict.
//   - An endpoint has one entry in a ledger: its identity, its load and its leases.
//   - An [EndpointSet] is one balancer's list of endpoints. It finds the entry of
//     each by its [Identity].
//   - A [ReadySet] holds an endpoint set's ready members of one priority level in
//     the order in which they are chosen. Weight and value belong to the member,
//     since two channels may disagree on them. The load belongs to the endpoint.
//   - A [Lease] is one counted choice. Its first Release, Succeed or Fail gives it back.
//   - A [Connection] is one transport to a member's endpoint. Leases belong to the one
//     that their member had when they were chosen, and outlive that: a server's limit of
//     streams is for each connection.
//   - [Guards] are an endpoint set's: failures weigh on an endpoint for a while, and
//     members that are new or back start slowly. A member may have a cap, and its
//     connection a limit. RPCs that find no room wait in the queue of
//     [EndpointSet.AcquireOrQueue].
//   - A [Drain] keeps new RPCs from endpoints for all endpoint sets of a ledger.
//   - Reports, see [EndpointSet.SetReports], say what other processes have in flight on a
//     member's server. Of the members that have reported just now, and of the one that is
//     next without reports, the one that has the least to do is chosen. Where reports
//     say nothing of use, each choice is the one without them. RPCs of sessions move by
//     them, too: off servers that have more than the fleet's level.
//   - Metrics read [Ledger.Totals]. [SeriesOf] adds them up by the [Labels] of endpoint sets,
//     so that each endpoint counts once in a series, whichever labels metrics are without.
//
// # Invariants
//
// [Ledger.Check] asserts them. The tests run it after every step.
//
//  1. An endpoint's load is the sum of its terms: the units of its RPCs in flight and its units of
//     penalty. Each endpoint has a live lease for each RPC in flight, with one unit or
//     what its [Cost] says, and a unit that
//     has not ended for each unit of penalty. No term is ever negative.
//  2. The count in flight changes only where a lease begins or ends, the units in flight there and where
//     a cost changes, the term penalty only where a lease fails or a unit ends.
//  3. Acquire chooses and counts under one lock. Of members of one weight it chooses
//     one with the least load, and of equals the one that waits longest, so serial
//     calls over idle equal endpoints visit each once per round. Where a newcomer
//     stands among its equals is random, so that a fleet of clients does not move in
//     step. Among weights counts decide first: right after its choice a member is
//     less than its own units above its weighted share of the ready set's load. What they leave
//     undecided goes by turns in proportion to weight × slow-start factor. Where a
//     weight's turn is at first is random. An empty member is chosen at least once in
//     ⌈W ÷ (weight × factor)⌉ + k − 1 choices, with k weights whose sum over the
//     members is W.
//  4. An endpoint without members and leases is not in the ledger.
//  5. Acquire, Release, Set and Remove cost O(log n) in the members of a ready set,
//     times the ready sets that share the endpoint. With equal weights Acquire and
//     Release cost O(1). (A table that grows is copied, as Go's maps are.) A change of
//     one member looks at no other, however many channels list the endpoint. Anything
//     else is done in steps of about 50 µs, between which others have the mutex:
//     closing, guards, the clock's work, totals and [Ledger.SnapshotInSteps]. Two are
//     not: Update, since a list is matched at one moment, costs O(log n) for each
//     endpoint that joins or leaves; [Ledger.Snapshot] is of one moment, too.
//  6. No member is chosen at its cap, which bounds the RPCs in flight, whatever they cost, nor at its
//     connection's limit, unless the RPC may not wait, or would not wait for long there
//     (see turnover). No RPC waits
//     while there is room where its endpoint set is served. Room goes to those that
//     wait for it in order of arrival, over all endpoint sets of a ledger.
//  7. An endpoint stands in every order by the sum of its terms, at all times. Reports
//     change no order: what invariant 3 says holds for the choices that are an order's own.
//  8. An RPC of a session that was asked to move has a place at its destination, which is
//     a lease: it counts there from the ask on, and no cap is passed. The session's next
//     RPC takes it up; it is given back when it cannot be, and after 10 s. Once nothing
//     moves, planned loads are what is in flight. For level loads either reports are gone
//     by, or planned loads, at no time both.
//  9. A member takes no RPCs while its endpoint is drained, whatever its weight. An endpoint's
//     drains end one by one, and all when nobody lists it any more.
//
// # Concurrency
//
// Everything here is safe for concurrent use. One mutex guards a ledger with all its
// endpoint sets, ready sets and leases. Nothing is called out under it. The registry
// has a mutex of its own; the two are never held together.
//
// Exported functions and methods take the mutex that they need. Unexported ones run
// with the ledger's mutex held, unless they say that they take it. Where both stand
// side by side, the one that needs it held ends in Locked. What works in steps lets go
// of it between two of them, with all invariants in force.
package state
