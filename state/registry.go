package state

import (
	"runtime"
	"sync"
	"weak"
)

// registry finds the ledgers of the process without keeping one alive.
var registry = struct {
	mu    sync.Mutex
	keyed map[string]weak.Pointer[Ledger]
	all   map[weak.Pointer[Ledger]]struct{} // private ones, too
}{
	keyed: map[string]weak.Pointer[Ledger]{},
	all:   map[weak.Pointer[Ledger]]struct{}{},
}

// Open returns the ledger of a resource key: the one that is in use anywhere in
// the process, or a new one. With an empty key the ledger is private to the
// caller. It lives while an endpoint set, a ready set or a live lease of it is reachable.
func Open(key string) *Ledger {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if key != "" {
		if l := registry.keyed[key].Value(); l != nil {
			return l
		}
	}
	l := newLedger(key)
	p := weak.Make(l)
	registry.all[p] = struct{}{}
	if key != "" {
		registry.keyed[key] = p
	}
	runtime.AddCleanup(l, func(p weak.Pointer[Ledger]) { forget(key, p) }, p)
	return l
}

// forget drops a collected ledger, unless its key has a new one by now.
func forget(key string, p weak.Pointer[Ledger]) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	delete(registry.all, p)
	if registry.keyed[key] == p {
		delete(registry.keyed, key)
	}
}

// Ledgers returns the ledgers that are in use now, in no order. Holding one
// keeps it alive.
func Ledgers() []*Ledger {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	var ls []*Ledger
	for p := range registry.all {
		if l := p.Value(); l != nil {
			ls = append(ls, l)
		}
	}
	return ls
}
