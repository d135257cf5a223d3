// Package trial plays scenarios with load balancing policies and tells where each policy put its sessions, for programs
// that compare policies.
//
// A session is a bidirectional stream that is held open. A [Scenario] changes servers while sessions are open and opens
// more; [Run] plays it with a [Policy] over real connections to [Host]s and returns an [Outcome]: how many sessions each
// host held before and after, as its server sees them, and each [Placement]. Between a change and the next session a trial
// waits until the policy has followed the change. It sees that by sessions that it opens as probes and ends again: so it
// needs no knowledge of the policy, and never takes something as done because time has passed. Of least_conn, it also
// compares the counts with the servers' each time it asks these.
//
// The package links the policies that it names: least_conn, and grpc-go's round_robin and least_request_experimental.
package trial
