package integration

import "testing"

// Proxies among the endpoints are counted as nodes are: whoever joins takes the
// next streams until it is level, whoever leaves and returns is known again.
func TestProxiesAmongNodes(t *testing.T) {
	ns := startNodes(t, "direct", "nginx", "haproxy")
	a, b, c := ns[0], startProxy(t, nginx, settings{}, ns[1]), startProxy(t, haproxy, settings{}, ns[2])
	m := dialMix(t, a, b)
	first := m.hold(4, map[string]int{"direct": 2, "nginx": 2})

	m.list(a, b, c)
	second := m.hold(2, map[string]int{"haproxy": 2})
	third := m.hold(3, map[string]int{"direct": 1, "nginx": 1, "haproxy": 1})
	m.counts(3, 3, 3)

	m.list(a, c)
	fourth := m.hold(2, map[string]int{"direct": 1, "haproxy": 1})
	m.counts(4, 3, 4)
	m.list(c, b, a)
	fifth := m.hold(1, map[string]int{"nginx": 1})
	m.counts(4, 4, 4)
	m.endAll(first, second, third, fourth, fifth)
	m.counts(0, 0, 0)
}

// A proxy that reloads lets its old streams live on behind the new ones: they
// stay counted, on two connections, and the old worker ends with the last.
func TestProxyReloads(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		ns := startNodes(t, "near", "far", "new")
		p := startProxy(t, k, settings{}, ns[1])
		m := dialMix(t, ns[0], p)
		first := m.hold(6, map[string]int{"near": 3, "far": 3})

		old, fresh := p.reload()
		m.waitWorker(fresh)
		m.connected(p, 2)
		m.counts(3, 3)
		second := m.hold(2, map[string]int{"near": 1, "far": 1})
		m.alive(first)

		m.list(ns[0], p, ns[2])
		third := m.hold(4, map[string]int{"new": 4})
		m.counts(4, 4, 4)

		m.endAll(first)
		p.waitGone(old)
		m.connected(p, 1)
		m.counts(1, 1, 4)
		fourth := m.hold(6, map[string]int{"near": 3, "far": 3})

		old, fresh = p.reload()
		m.waitWorker(fresh)
		m.counts(4, 4, 4)
		fifth := m.hold(3, map[string]int{"near": 1, "far": 1, "new": 1})
		m.endAll(second, third, fourth, fifth)
		p.waitGone(old)
		m.counts(0, 0, 0)
	})
}

// A reload may take a proxy to other nodes. Its endpoint stays the same, with
// the streams that are still on the old ones.
func TestProxyMovesToAnotherNode(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		ns := startNodes(t, "near", "old", "new")
		p := startProxy(t, k, settings{}, ns[1])
		m := dialMix(t, ns[0], p)
		first := m.hold(4, map[string]int{"near": 2, "old": 2})

		p.nodes = []server{ns[2]}
		_, fresh := p.reload()
		m.waitWorker(fresh)
		second := m.hold(4, map[string]int{"near": 2, "new": 2})
		m.inFlight(4, 4)
		m.endAll(first, second)
		m.counts(0, 0)
	})
}

// A proxy that drains for good closes its port at once and ends with its last
// stream. Others get what comes; when it is back it catches up.
func TestProxyDrains(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		ns := startNodes(t, "near", "far")
		p := startProxy(t, k, settings{}, ns[1])
		m := dialMix(t, ns[0], p)
		far, near := on("far", m.hold(6, map[string]int{"near": 3, "far": 3}))

		p.signal(k.drain)
		wait(t, "the channel has heard of it", func() bool { return !m.ready(p) })
		more := m.hold(2, map[string]int{"near": 2})
		m.counts(5, 3)

		m.endAll(far)
		p.waitEnded()
		m.counts(5, 0)

		p.start()
		m.waitWorker(p.worker())
		back := m.hold(5, map[string]int{"far": 5})
		m.counts(5, 5)
		m.endAll(near, more, back)
		m.counts(0, 0)
	})
}
