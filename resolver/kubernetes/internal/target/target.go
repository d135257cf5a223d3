// Package target reads dial targets of the scheme "k8s". It is a package of its
// own so that it can be fuzzed without all of client-go.
package target

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Scheme is that of the targets.
const Scheme = "k8s"

// Target is what a dial target says.
type Target struct {
	Service   string
	Namespace string
	Port      string // as written: a number or a name; "" without one
	Number    int32  // of the port; 0 if it is a name or not there
	Zone      string // "" without one
}

// Parse reads a dial target. What it does not say is taken from defaults.
func Parse(u url.URL, defaults Target) (Target, error) {
	t, err := parse(u, defaults)
	if err != nil {
		return Target{}, fmt.Errorf("%s: target %q: %w", Scheme, u.Redacted(), err)
	}
	return t, nil
}

func parse(u url.URL, defaults Target) (t Target, err error) {
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
	t = Target{Namespace: defaults.Namespace, Zone: defaults.Zone}
	if err = t.readParams(u.RawQuery); err != nil {
		return t, err
	}
	name, port, hasPort := strings.Cut(u.Path[1:], ":")
	if hasPort {
		if err = t.readPort(port); err != nil {
			return t, err
		}
	}
	var namespace string
	var hasNamespace bool
	if t.Service, namespace, hasNamespace = strings.Cut(name, "."); hasNamespace {
		t.Namespace = namespace
	}
	if err = CheckLabel("service", t.Service); err != nil {
		return t, err
	}
	return t, CheckLabel("namespace", t.Namespace)
}

const forms = "want k8s:///service, k8s:///service.namespace or k8s:///service.namespace:port"

// CheckLabel says what is wrong with the name of a service, a namespace or a
// port.
func CheckLabel(field, value string) error {
	if len(validation.IsDNS1123Label(value)) == 0 {
		return nil
	}
	return fmt.Errorf("%s %q: want 1 to %d lower case letters, digits and hyphens, with no hyphen at either end: %s",
		field, value, validation.DNS1123LabelMaxLength, forms)
}

// readPort takes a port: digits are a number, all else is a name.
func (t *Target) readPort(written string) error {
	t.Port = written
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
	t.Number, t.Port = int32(n), strconv.FormatUint(n, 10)
	return nil
}

// readParams takes the query of a target. There is one parameter.
func (t *Target) readParams(query string) error {
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
		t.Zone = values[name][0]
		if err := CheckZone("parameter zone: value", t.Zone); err != nil {
			return err
		}
	}
	return nil
}

// CheckZone says what is wrong with the name of a zone, which is the value of a
// node's label.
func CheckZone(field, zone string) error {
	if zone == "" || len(validation.IsValidLabelValue(zone)) > 0 {
		return fmt.Errorf("%s %q: want the name of a zone as nodes have it in the label topology.kubernetes.io/zone, such as eu-1a", field, zone)
	}
	return nil
}

// String returns the target in the one spelling that names a service and a
// port, whatever was left out of it.
func (t Target) String() string {
	s := Scheme + ":///" + t.Service + "." + t.Namespace
	if t.Port != "" {
		s += ":" + t.Port
	}
	return s
}
