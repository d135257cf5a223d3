package state

// counters are what a roster has done, ever.
type counters struct {
	Picks     uint64 // of views that are closed; others count their own
	Queued    uint64 // RPCs that had to wait
	Elsewhere uint64 // attempts that avoided a node tried before
	Penalties uint64 // units that failures have left
}
