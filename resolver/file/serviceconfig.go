package file

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// readServiceConfig takes the service config as JSON, the only form that gRPC
// reads.
func (l *list) readServiceConfig(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "serviceConfig: value %s: want an object, the service config itself", shown(n))
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return decodeError(n, err)
	}
	js, err := json.Marshal(value)
	if err != nil {
		return wrong(n, "serviceConfig: %v: want what JSON can hold", err)
	}
	l.serviceConfig, l.configLine = string(js), n.Line
	return nil
}

// inLine finds the line and the text of one of the library's errors.
var inLine = regexp.MustCompile(`line (\d+): (.*)`)

// decodeError is an error in the value of n, with its own line if it has one.
func decodeError(n *yaml.Node, err error) error {
	var errs *yaml.TypeError
	if errors.As(err, &errs) {
		if m := inLine.FindStringSubmatch(errs.Errors[0]); m != nil {
			line, _ := strconv.Atoi(m[1])
			return &lineError{line: line, text: "serviceConfig: " + m[2] + ": want what JSON can hold"}
		}
	}
	return wrong(n, "serviceConfig: %v: want what JSON can hold", err)
}
