package file

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxResourceKey is the longest resource key, in bytes, as in the policy's
// configuration.
const maxResourceKey = 1024

// list is what a file says.
type list struct {
	resourceKey   string // "" without one, as in what follows
	authority     string
	serviceConfig string // JSON
	configLine    int
	nodes         []node
}

// parse reads a file. Its error is about the first thing that is wrong.
func parse(data []byte) (*list, error) {
	return guarded(func() (*list, error) { return parseList(data) })
}

func parseList(data []byte) (*list, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	l := &list{}
	err = object(root, "file", setters{
		"resourceKey": text("resourceKey", &l.resourceKey, fmt.Sprintf("want 1 to %d bytes", maxResourceKey),
			func(s string) bool { return s != "" && len(s) <= maxResourceKey }),
		"authority":     text("authority", &l.authority, wantName, isName),
		"serviceConfig": l.readServiceConfig,
		"nodes":         l.readNodes,
	})
	if err == nil && l.nodes == nil {
		err = wrong(root, "file: there is no key nodes: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []")
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *list) readNodes(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return wrong(n, "nodes: value %s: want a list, such as [{address: 10.0.0.1:443}]; an empty one is []", shown(n))
	}
	l.nodes = make([]node, 0, len(n.Content))
	seen := repeats{addresses: map[string]int{}, ids: map[string]int{}}
	for _, item := range n.Content {
		v, err := readNode(item, seen)
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, v)
	}
	return nil
}
