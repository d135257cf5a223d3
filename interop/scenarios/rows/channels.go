package rows

import (
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

// channels is scenarios of channels: several of one process, one that sleeps, one that many use at once.
func channels() []scenario.Scenario {
	return []scenario.Scenario{
		secondChannel(), twoChannels(), channelCloses(), keysApart(), fiftyChannels(), idleAndWake(), burst(),
	}
}

func secondChannel() scenario.Scenario {
	return scenario.Scenario{
		Name: "second channel", Change: "beside a channel to a, one to a and b opens 6", Hosts: 2,
		Before: scenario.Loads("ab", 6, 0), After: scenario.Loads("ab", 6, 6),
		Play: func(r *scenario.Run) {
			one, two := r.Dial(scenario.ClientConfig{}), r.Dial(scenario.ClientConfig{})
			one.List("a")
			one.Open(6)
			two.List("ab")
			r.RecordBefore()
			two.Open(6)
		},
	}
}

func twoChannels() scenario.Scenario {
	return scenario.Scenario{
		Name: "two channels", Change: "one of two channels holds all, c joins a and b, the other one opens 4", Hosts: 3,
		Before: scenario.Loads("abc", 4, 4, 0), After: scenario.Loads("abc", 4, 4, 4),
		Play: func(r *scenario.Run) {
			one, two := r.Dial(scenario.ClientConfig{}), r.Dial(scenario.ClientConfig{})
			one.List("ab")
			two.List("ab")
			one.Open(8)
			one.List("abc")
			two.List("abc")
			r.RecordBefore()
			two.Open(4)
		},
	}
}

func channelCloses() scenario.Scenario {
	return scenario.Scenario{
		Name: "channel closes", Change: "the channel to a closes, the one to a and b has 4 and opens 4 more", Hosts: 2,
		Before: scenario.Loads("ab", 0, 4), After: scenario.Loads("ab", 4, 4),
		Play: func(r *scenario.Run) {
			one, two := r.Dial(scenario.ClientConfig{}), r.Dial(scenario.ClientConfig{})
			one.List("a")
			one.Open(4)
			two.List("ab")
			two.Open(4)
			one.Close()
			r.RecordBefore()
			two.Open(4)
		},
	}
}

func keysApart() scenario.Scenario {
	return scenario.Scenario{
		Name: "keys apart", Change: "second channel again, but the channels have different resource keys", Hosts: 2,
		Before: scenario.Loads("ab", 6, 0), After: scenario.Loads("ab", 9, 3),
		Play: func(r *scenario.Run) {
			one, two := r.Dial(scenario.ClientConfig{Key: "one"}), r.Dial(scenario.ClientConfig{Key: "two"})
			one.List("a")
			one.Open(6)
			two.List("ab")
			r.RecordBefore()
			two.Open(6)
		},
	}
}

func fiftyChannels() scenario.Scenario {
	return scenario.Scenario{
		Name: "fifty channels", Change: "each opens 1, then each another one", Hosts: 5,
		Before: scenario.Loads("abcde", 10, 10, 10, 10, 10), After: scenario.Loads("abcde", 20, 20, 20, 20, 20),
		Play: func(r *scenario.Run) {
			for range 50 {
				r.Dial(scenario.ClientConfig{}).List("abcde")
			}
			for _, c := range r.Clients() {
				c.Open(1)
			}
			r.RecordBefore()
			for _, c := range r.Clients() {
				c.Open(1)
			}
		},
	}
}

func idleAndWake() scenario.Scenario {
	return scenario.Scenario{
		Name: "idle and wake", Change: "beside a channel to a, one to a and b falls asleep and wakes to open 6", Hosts: 2,
		Before: scenario.Loads("ab", 6, 0), After: scenario.Loads("ab", 6, 6),
		Play: func(r *scenario.Run) {
			busy := r.Dial(scenario.ClientConfig{})
			sleepy := r.Dial(scenario.ClientConfig{Options: []grpc.DialOption{grpc.WithIdleTimeout(100 * time.Millisecond)}})
			busy.List("a")
			busy.Open(6)
			sleepy.List("ab")
			sleepy.Idle()
			r.RecordBefore()
			sleepy.Wake(6)
		},
	}
}

func burst() scenario.Scenario {
	const ten = "abcdefghij"
	return scenario.Scenario{
		Name: "burst", Change: "1,000 open at one moment over ten servers", Hosts: 10,
		Before: scenario.Loads(ten), After: scenario.Loads(ten, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100),
		Play: func(r *scenario.Run) {
			c := r.Dial(scenario.ClientConfig{})
			c.List(ten)
			r.RecordBefore()
			c.OpenTogether(1000)
		},
	}
}
