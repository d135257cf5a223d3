package kubernetes

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
	"k8s.io/apimachinery/pkg/util/validation"
)

// target is what a dial target says.
type target struct {
	service   string
	namespace string
	port      string // as written: a number or a name; "" without one
	number    int32  // of the port; 0 if it is a name or not there
	zone      string // "" without one
}

// parse reads a dial target. What it does not say is taken from the options.
func parse(t resolver.Target, opts Options) (target, error) {
	parsed, err := parseURL(t.URL, t.Endpoint(), opts)
	if err != nil {
		return target{}, fmt.Errorf("%s: target %q: %w", Scheme, t.URL.Redacted(), err)
	}
	return parsed, nil
}

func parseURL(u url.URL, endpoint string, opts Options) (t target, err error) {
	switch {
	case u.User != nil:
		return t, errors.New("has a user, want none: " + forms)
	case u.Host != "":
		return t, fmt.Errorf("has an authority, %q, want none: %s", u.Host, forms)
	case u.Fragment != "":
		return t, fmt.Errorf("has a fragment, %q, want none: %s", u.Fragment, forms)
	case u.Opaque != "" || !strings.HasPrefix(u.Path, "/"):
		return t, errors.New("has no slashes after the scheme: " + forms)
	}
	t = target{namespace: opts.Namespace, zone: opts.Zone}
	if err = t.readParams(u.RawQuery); err != nil {
		return t, err
	}
	name, port, hasPort := strings.Cut(endpoint, ":")
	if hasPort {
		if err = t.readPort(port); err != nil {
			return t, err
		}
	}
	var namespace string
	var hasNamespace bool
	if t.service, namespace, hasNamespace = strings.Cut(name, "."); hasNamespace {
		t.namespace = namespace
	}
	if err = checkLabel("service", t.service); err != nil {
		return t, err
	}
	return t, checkLabel("namespace", t.namespace)
}

const forms = "want k8s:///service, k8s:///service.namespace or k8s:///service.namespace:port"

// checkLabel says what is wrong with the name of a service, a namespace or a
// port.
func checkLabel(field, value string) error {
	if len(validation.IsDNS1123Label(value)) == 0 {
		return nil
	}
	return fmt.Errorf("%s %q: want 1 to %d lower case letters, digits and hyphens, with no hyphen at either end: %s",
		field, value, validation.DNS1123LabelMaxLength, forms)
}

// readPort takes a port: digits are a number, all else is a name.
func (t *target) readPort(written string) error {
	t.port = written
	if written == "" || strings.Trim(written, "0123456789") != "" {
		if len(validation.IsDNS1123Label(written)) > 0 {
			return fmt.Errorf("port %q: want a number from 1 to 65535, or the name of a port of the service, such as grpc", written)
		}
		return nil
	}
	n, err := strconv.ParseUint(written, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("port %q: want a number from 1 to 65535, or the name of a port of the service, such as grpc", written)
	}
	t.number, t.port = int32(n), strconv.FormatUint(n, 10)
	return nil
}

// readParams takes the query of a target. There is one parameter.
func (t *target) readParams(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("parameters %q: %w", query, err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name != "zone":
			return fmt.Errorf("parameter %s: value %q: no such parameter, want zone", name, values[name][0])
		case len(values[name]) > 1:
			return fmt.Errorf("parameter zone: values %q: want one value", values[name])
		}
		t.zone = values[name][0]
		if err := checkZone("parameter zone: value", t.zone); err != nil {
			return err
		}
	}
	return nil
}

// checkZone says what is wrong with the name of a zone, which is the value of a
// node's label.
func checkZone(field, zone string) error {
	if zone == "" || len(validation.IsValidLabelValue(zone)) > 0 {
		return fmt.Errorf("%s %q: want the name of a zone as nodes have it in the label topology.kubernetes.io/zone, such as eu-1a", field, zone)
	}
	return nil
}

// String returns the target in the one spelling that names a service and a
// port, whatever was left out of it.
func (t target) String() string {
	s := Scheme + ":///" + t.service + "." + t.namespace
	if t.port != "" {
		s += ":" + t.port
	}
	return s
}
