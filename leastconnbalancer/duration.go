package leastconnbalancer

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that is a string in JSON: written in seconds, as
// service configs have it ("1.5s"), and read in any unit that
// time.ParseDuration knows.
type Duration time.Duration

// NewDuration returns d for an optional field of a [Config].
func NewDuration(d time.Duration) *Duration { return (*Duration)(&d) }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return []byte(d.json()), nil }

func (d Duration) json() string {
	s := strconv.FormatFloat(time.Duration(d).Seconds(), 'f', 9, 64)
	return strconv.Quote(strings.TrimRight(strings.TrimRight(s, "0"), ".") + "s")
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(js []byte) error {
	var s string
	if err := json.Unmarshal(js, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}
