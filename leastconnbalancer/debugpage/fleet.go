package debugpage

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// fleet is what servers say of a service's endpoints.
type fleet struct {
	Interval string // at which they are asked to report
	Others   int64  // RPCs that others have in flight there
	Spread   string // with these
	Silent   int64  // endpoints
}

// fleetOf returns nil where reports are not used.
func fleetOf(f state.FleetSnapshot) *fleet {
	if f.IntervalSeconds == 0 {
		return nil
	}
	return &fleet{seconds(f.IntervalSeconds).String(), f.Others, tenths(f.Imbalance), f.Silent}
}

// text continues the line of a service that begins with its spread.
func (f *fleet) text() string {
	if f == nil {
		return ""
	}
	text := fmt.Sprintf(", of the fleet %s with %d of others", f.Spread, f.Others)
	if f.Silent > 0 {
		text += fmt.Sprintf(", %d silent", f.Silent)
	}
	return text
}

// report is what a server says of itself.
type report struct {
	Others string // RPCs that others have in flight there; "" when that is not known
	Age    string // of what it said last; "" when it has said nothing
	Silent bool
}

func reportOf(r state.ReportSnapshot) report {
	of := report{Silent: r.Silent}
	if r.Told {
		of.Others = strconv.FormatInt(r.Others, 10)
	}
	if r.Told || r.AgeSeconds > 0 {
		of.Age = age(r.AgeSeconds)
	}
	return of
}

// text is the report's cell.
func (r report) text() string {
	switch {
	case !r.Silent:
		return dash(r.Age)
	case r.Age == "":
		return "silent"
	}
	return "silent for " + r.Age
}

// age writes how old a report is: to a tenth of a second while it is young, since reports may
// come ten times in a second.
func age(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.1fs", math.Floor(s*10)/10)
	}
	return (time.Duration(s) * time.Second).String()
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s*1e3)) * time.Millisecond }

// tenths writes a number to a tenth.
func tenths(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }
