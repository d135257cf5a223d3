package main

// fault is a kind of fault. Adding one to a table is all that it takes to have it injected, logged and counted.
type fault struct {
	name  string
	share int  // how often it is drawn, relative to the others of its table
	over  bool // it may go on over a quiet point; that changes nothing of what is in flight there
	begin func(t target, roll uint32) error
	end   func(t target, roll uint32) error // nil if it is over at once
}

// target is whom a fault happens to.
type target struct {
	site    *site
	member  *member
	channel *channel
}

// find returns the fault of that name; the plan knows no others.
func find(faults []fault, name string) fault {
	for _, f := range faults {
		if f.name == name {
			return f
		}
	}
	panic("soak: no fault " + name)
}

// site is what the day happens to.
type site struct {
	fleet    *fleet
	channels []*channel
}

// push tells all channels their lists.
func (s *site) push() error {
	for _, c := range s.channels {
		if err := c.push(); err != nil {
			return err
		}
	}
	return nil
}
