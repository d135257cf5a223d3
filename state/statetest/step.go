package statetest

import "slices"

// operation is one kind of step. It is for an endpoint set that is open.
type operation struct {
	name string
	odds int
	run  func(s *script, id int) error
}

var operations = []operation{
	{"acquire", 7, (*script).acquire},
	{"pick", 8, (*script).pick},
	{"burst", 4, (*script).burst},
	{"pick again", 8, (*script).pickAgain},
	{"set cost", 5, (*script).setCost},
	{"cancel", 2, (*script).cancel},
	{"pause", 1, (*script).pause},
	{"serve elsewhere", 1, (*script).serveElsewhere},
	{"release", 7, (*script).releaseAny},
	{"release many", 1, (*script).releaseMany},
	{"fail", 4, (*script).failAny},
	{"release again", 1, (*script).releaseAgain},
	{"add", 4, (*script).add},
	{"list", 1, (*script).list},
	{"remove", 1, (*script).remove},
	{"set", 2, (*script).change},
	{"flap", 2, (*script).flap},
	{"come back", 1, (*script).comeBack},
	{"start up", 4, (*script).startUp},
	{"reconnect", 1, (*script).reconnect},
	{"connected", 5, (*script).connected},
	{"drain", 1, (*script).drain},
	{"end a drain", 3, (*script).endDrain},
	{"cap", 3, (*script).cap},
	{"connect", 2, (*script).connect},
	{"room", 3, (*script).room},
	{"hang up", 1, (*script).hangUp},
	{"guard", 1, (*script).guard},
	{"serve", 1, (*script).serve},
	{"report", 4, (*script).report},
	{"use reports", 1, (*script).useReports},
	{"publish", 2, (*script).publish},
	{"pass", 4, (*script).pass},
	{"close", 1, (*script).closeSome},
}

// wheel has each operation as often as its odds.
var wheel = func() (all []operation) {
	for _, op := range operations {
		all = append(all, slices.Repeat([]operation{op}, op.odds)...)
	}
	return all
}()

func (s *script) step() (string, error) {
	op := of(s, wheel)
	id := s.next(3)
	if s.sets[id] == nil {
		s.openSet(id)
		return "open", nil
	}
	return op.name, op.run(s, id)
}
