package main

import (
	"time"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// channels is scenarios of channels: several of one process, one that sleeps, one that many use at once.
func channels() []trial.Scenario {
	return []trial.Scenario{
		secondChannel(), twoChannels(), channelCloses(), keysApart(), fiftyChannels(), idleAndWake(), burst(),
	}
}

func secondChannel() trial.Scenario {
	return trial.Scenario{
		Name: "second channel", Change: "beside a channel to a, one to a and b opens 6", Hosts: 2,
		Before: trial.At("ab", 6, 0), After: trial.At("ab", 6, 6),
		Play: func(t *trial.Trial) {
			one, two := t.Dial(trial.Dialing{}), t.Dial(trial.Dialing{})
			one.List("a")
			one.Open(6)
			two.List("ab")
			t.Changed()
			two.Open(6)
		},
	}
}

func twoChannels() trial.Scenario {
	return trial.Scenario{
		Name: "two channels", Change: "one of two channels holds all, c joins a and b, the other one opens 4", Hosts: 3,
		Before: trial.At("abc", 4, 4, 0), After: trial.At("abc", 4, 4, 4),
		Play: func(t *trial.Trial) {
			one, two := t.Dial(trial.Dialing{}), t.Dial(trial.Dialing{})
			one.List("ab")
			two.List("ab")
			one.Open(8)
			one.List("abc")
			two.List("abc")
			t.Changed()
			two.Open(4)
		},
	}
}

func channelCloses() trial.Scenario {
	return trial.Scenario{
		Name: "channel closes", Change: "the channel to a closes, the one to a and b has 4 and opens 4 more", Hosts: 2,
		Before: trial.At("ab", 0, 4), After: trial.At("ab", 4, 4),
		Play: func(t *trial.Trial) {
			one, two := t.Dial(trial.Dialing{}), t.Dial(trial.Dialing{})
			one.List("a")
			one.Open(4)
			two.List("ab")
			two.Open(4)
			one.Close()
			t.Changed()
			two.Open(4)
		},
	}
}

func keysApart() trial.Scenario {
	return trial.Scenario{
		Name: "keys apart", Change: "second channel again, but the channels have different resource keys", Hosts: 2,
		Before: trial.At("ab", 6, 0), After: trial.At("ab", 9, 3),
		Play: func(t *trial.Trial) {
			one, two := t.Dial(trial.Dialing{Key: "one"}), t.Dial(trial.Dialing{Key: "two"})
			one.List("a")
			one.Open(6)
			two.List("ab")
			t.Changed()
			two.Open(6)
		},
	}
}

func fiftyChannels() trial.Scenario {
	return trial.Scenario{
		Name: "fifty channels", Change: "each opens 1, then each another one", Hosts: 5,
		Before: trial.At("abcde", 10, 10, 10, 10, 10), After: trial.At("abcde", 20, 20, 20, 20, 20),
		Play: func(t *trial.Trial) {
			for range 50 {
				t.Dial(trial.Dialing{}).List("abcde")
			}
			for _, c := range t.Clients() {
				c.Open(1)
			}
			t.Changed()
			for _, c := range t.Clients() {
				c.Open(1)
			}
		},
	}
}

func idleAndWake() trial.Scenario {
	return trial.Scenario{
		Name: "idle and wake", Change: "beside a channel to a, one to a and b falls asleep and wakes to open 6", Hosts: 2,
		Before: trial.At("ab", 6, 0), After: trial.At("ab", 6, 6),
		Play: func(t *trial.Trial) {
			busy := t.Dial(trial.Dialing{})
			sleepy := t.Dial(trial.Dialing{Options: []grpc.DialOption{grpc.WithIdleTimeout(100 * time.Millisecond)}})
			busy.List("a")
			busy.Open(6)
			sleepy.List("ab")
			sleepy.Idle()
			t.Changed()
			sleepy.Wake(6)
		},
	}
}

func burst() trial.Scenario {
	const ten = "abcdefghij"
	return trial.Scenario{
		Name: "burst", Change: "1,000 open at one moment over ten servers", Hosts: 10,
		Before: trial.At(ten), After: trial.At(ten, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100),
		Play: func(t *trial.Trial) {
			c := t.Dial(trial.Dialing{})
			c.List(ten)
			t.Changed()
			c.OpenTogether(1000)
		},
	}
}
